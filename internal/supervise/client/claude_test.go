package client

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The client's version is read from its greeting, and from nothing else.
func TestTooOld(t *testing.T) {
	old := claudeTooOld("\n ▐▛███▜▌   Claude Code v2.1.138\n▝▜█████▛▘  Opus\n")
	assert.Contains(t, old, "Claude Code is 2.1.138")
	assert.Contains(t, old, "it takes 2.1.139 or later")
	for _, text := range []string{
		"", "Claude Code v2.1.139", "           Claude Code v2.1.329", "❯ is Claude Code v2.1.1 too old?", "● Claude Code v2.1", "Claude Code v2.1.99999999999",
	} {
		assert.Empty(t, claudeTooOld(text), text)
	}
}
