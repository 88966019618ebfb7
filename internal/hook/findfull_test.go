package hook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTakesOver(t *testing.T) {
	const chunk = searched
	path := filepath.Join(t.TempDir(), "heartbeat")
	for name, c := range map[string]struct {
		text string
		is   bool
	}{
		"nothing":            {"", false},
		"a script":           {"#!/bin/sh\nexit 2\n", false},
		"a part of it":       {handedOverFlag[:len(handedOverFlag)-1], false},
		"it alone":           {handedOverFlag, true},
		"across two reads":   {strings.Repeat("x", chunk-5) + handedOverFlag + strings.Repeat("y", chunk), true},
		"across later ones":  {strings.Repeat("x", 3*chunk-20) + handedOverFlag, true},
		"in the first third": {handedOverFlag + strings.Repeat("y", 3*chunk), true},
		"across the third":   {strings.Repeat("x", chunk-5) + handedOverFlag + strings.Repeat("y", 2*chunk-9), true},
		"a long other one":   {strings.Repeat("-", 3*chunk), false},
	} {
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o700), name)
		is, err := takesOver(path)
		require.NoError(t, err, name)
		assert.Equal(t, c.is, is, name)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	is, err := takesOver(self)
	require.NoError(t, err)
	assert.True(t, is, "a program that links the hook")
}

// A pipe would keep the hook waiting for a writer.
func TestTakesOverAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heartbeat")
	require.NoError(t, unix.Mkfifo(path, 0o700))
	is, err := takesOver(path)
	require.NoError(t, err)
	assert.False(t, is)
}
