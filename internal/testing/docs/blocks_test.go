package docs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.md")
	require.NoError(t, os.WriteFile(path, []byte("a\n```sh\nb\nc\n```\nd\n```\n```\n"), 0o600))
	blocks, prose, err := Split(path)
	require.NoError(t, err)
	assert.Equal(t, []Block{{"sh", "b\nc\n"}, {}}, blocks)
	assert.Equal(t, "a\nd\n", prose)

	require.NoError(t, os.WriteFile(path, []byte("```\nb\n"), 0o600))
	_, _, err = Split(path)
	assert.ErrorContains(t, err, "a block has no end")
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(raw)
}

func split(t *testing.T, path string) (blocks []Block, prose string) {
	t.Helper()
	blocks, prose, err := Split(filepath.Join(root, path))
	require.NoError(t, err)
	return blocks, prose
}

// documents are all that people read, by their paths.
func documents(t *testing.T) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/advanced/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range found {
			relative, err := filepath.Rel(root, path)
			require.NoError(t, err)
			if relative != "NOTICES.md" { // others wrote it
				paths = append(paths, relative)
			}
		}
	}
	require.Greater(t, len(paths), 5)
	return paths
}
