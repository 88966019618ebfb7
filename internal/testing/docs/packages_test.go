package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var folder = regexp.MustCompile("`((?:cmd|inbox|internal|orchestrate|packaging|recover|scripts|testdata)[a-z/-]*)/`")

// TestPackages holds the design's table of packages to the folders that there are. A
// row speaks for the folders below its own.
func TestPackages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/design.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "\n## Packages\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	var rows []string
	for _, m := range folder.FindAllStringSubmatch(table, -1) {
		assert.DirExists(t, filepath.Join(root, m[1]))
		rows = append(rows, m[1])
	}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		require.NoError(t, err)
		assert.True(t, covered(dir, rows), "%s is in no row of docs/design.md", dir)
		return nil
	}))
}

func covered(dir string, rows []string) bool {
	for _, row := range rows {
		if dir == row || strings.HasPrefix(dir, row+"/") {
			return true
		}
	}
	return false
}
