package screen

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/screen"
)

func TestRetrying(t *testing.T) {
	for text, want := range map[string]screen.Retry{
		"❯ begin\n\n✻ API error · retrying in 1s · attempt 1/10\n" + input(""):      {Cause: "API error", Try: "1", Most: "10"},
		"❯ begin\n\n· API error · retrying… · attempt 2/10\n" + input("typed"):      {Cause: "API error", Try: "2", Most: "10"},
		"✽ 401 invalid x-api-key · retrying in 1m 2s · attempt 10/10\n" + input(""): {Cause: "401 invalid x-api-key", Try: "10", Most: "10"},
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
		assert.Equal(t, want != screen.Retry{}, ok, text)
	}
}
