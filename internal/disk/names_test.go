package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestNames(t *testing.T) {
	dir := t.TempDir()
	names, more, err := Names(dir, 2)
	require.NoError(t, err)
	assert.Empty(t, names)
	assert.False(t, more)
	for _, name := range []string{"a", "b"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	names, more, err = Names(dir, 2)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"a", "b"}, names)
	assert.False(t, more)
	names, more, err = Names(dir, 1)
	require.NoError(t, err)
	assert.Len(t, names, 1)
	assert.True(t, more)

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	for _, path := range []string{link, pipe, filepath.Join(dir, "a"), filepath.Join(dir, "missing")} {
		_, _, err = Names(path, 1)
		require.ErrorContains(t, err, path)
	}
}
