package managed

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The client's version is read from its greeting, and from nothing else.
func TestTooOld(t *testing.T) {
	e := tooOld("\n ▐▛███▜▌   Claude Code v2.1.138\n▝▜█████▛▘  Opus\n")
	require.NotNil(t, e)
	assert.Equal(t, SetUp, e.reason)
	assert.Contains(t, e.detail, "Claude Code is 2.1.138")
	assert.Contains(t, e.detail, "it takes 2.1.139 or later")
	for _, text := range []string{
		"", "Claude Code v2.1.139", "           Claude Code v2.1.329", "❯ is Claude Code v2.1.1 too old?", "● Claude Code v2.1", "Claude Code v2.1.99999999999",
	} {
		assert.Nil(t, tooOld(text), text)
	}
}
