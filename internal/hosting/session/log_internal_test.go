package session

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a client writes to standard error for weeks does not fill the disk, and its end is known all the same.
func TestTheLogOfATalkativeClient(t *testing.T) {
	l, err := openLog(t.TempDir(), "ses-1")
	require.NoError(t, err)
	for range mostStderr>>20 + 3 {
		_, err := l.Write(bytes.Repeat([]byte("warning\n"), 1<<20/8))
		require.NoError(t, err)
	}
	_, err = l.Write([]byte("the last word"))
	require.NoError(t, err)
	l.line("goes on")
	assert.Contains(t, l.stderr(), "the last word")
	l.close()
	text, err := os.ReadFile(l.path)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "[babysitter] the client has written over 64 MiB to its standard error: the rest is left out\n")
	assert.True(t, found)
	assert.Equal(t, "[babysitter] goes on\n", rest)
	assert.Less(t, len(text), mostStderr+1<<10)
}
