package hook

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Both kinds take the input and leave no name behind.
func TestUnnamedFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for name, open := range map[string]func() (*os.File, error){"of the system": unnamedFile, "unlinked": unlinkedFile} {
		f, err := open()
		require.NoError(t, err, name)
		_, err = f.WriteAt([]byte("input"), 0)
		require.NoError(t, err, name)
		b, err := io.ReadAll(io.NewSectionReader(f, 0, 10))
		require.NoError(t, err, name)
		assert.Equal(t, "input", string(b), name)
		require.NoError(t, f.Close(), name)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	t.Setenv("TMPDIR", dir+"/missing")
	_, err = unlinkedFile()
	assert.Error(t, err)
}
