package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// block is what stands between two fences of a document.
type block struct {
	language, text string
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(raw)
}

// split tells a document's fenced blocks from its prose.
func split(t *testing.T, path string) (blocks []block, prose string) {
	t.Helper()
	var inside *block
	for line := range strings.Lines(read(t, path)) {
		language, fence := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case fence && inside == nil:
			inside = &block{language: language}
		case fence:
			blocks, inside = append(blocks, *inside), nil
		case inside != nil:
			inside.text += line
		default:
			prose += line
		}
	}
	require.Nil(t, inside, "%s: a block has no end", path)
	return blocks, prose
}

// documents are all that people read, by their paths.
func documents(t *testing.T) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md"} {
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
