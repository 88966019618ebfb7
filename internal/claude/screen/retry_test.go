package screen

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRetrying(t *testing.T) {
	for text, want := range map[string]Retry{
		"❯ begin\n\n✻ API error · retrying in 1s · attempt 1/10\n" + input(""):      {"API error", "1", "10"},
		"❯ begin\n\n· API error · retrying… · attempt 2/10\n" + input("typed"):      {"API error", "2", "10"},
		"✽ 401 invalid x-api-key · retrying in 1m 2s · attempt 10/10\n" + input(""): {"401 invalid x-api-key", "10", "10"},
		"":                              {},
		"✻ Brewing… (4s)\n" + input(""): {},
		"✻ Cooked for 3s\n" + input(""): {},
		"API error · retrying in 1s · attempt 1/10":                                            {},
		"● API error · retrying in 1s · attempt 1/10\n" + input(""):                            {},
		"  ✻ API error · retrying in 1s · attempt 1/10\n" + input(""):                          {},
		"✻ API error · retrying in 1s · attempt 1/10\n\n✻ Brewing… (4s)\n" + input(""):         {},
		input("✻ API error · retrying in 1s · attempt 1/10"):                                   {},
		"✻ API error · retrying in 1s · attempt 1/10000000000000000000000000000\n" + input(""): {},
	} {
		got, ok := Retrying(text)
		assert.Equal(t, want, got, text)
		assert.Equal(t, want != Retry{}, ok, text)
	}
}
