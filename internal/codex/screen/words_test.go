package screen

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLastWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"Error: no such thing\n": "Error: no such thing",
		"one\nERROR: first\nERROR: it broke\ntokens used\n0\n": "it broke",
		"said ERROR: nothing\n12":                              "12",
	} {
		assert.Equal(t, want, LastWords(text))
	}
}
