// Package layers holds the dependencies of the project to one direction.
package walls

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rank is where a package stands: it imports only what stands lower, and
// packages of internal also each other.
func rank(pkg string) int {
	for _, room := range []string{"hook", "command", "launch"} { // what the commands are made of
		if strings.HasPrefix(pkg+"/", "heartbeat/internal/"+room+"/") {
			return 4
		}
	}
	for i, prefix := range []string{"heartbeat/internal/", "heartbeat/inbox", "heartbeat/recover", "heartbeat/orchestrate", "heartbeat/cmd/"} {
		if strings.HasPrefix(pkg, prefix) {
			return i
		}
	}
	return -1 // not ours
}

// TestImports reads every file that is no test.
func TestImports(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		pkg := "heartbeat/" + filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../../../"))
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if rank(imported) > 0 && rank(pkg) < 4 && !strings.HasPrefix(imported, pkg+"/") { // a command may have rooms of its own
				assert.Greater(t, rank(pkg), rank(imported), "%s imports %s", path, imported)
			}
			if imported == "heartbeat/recover" {
				require.NotNil(t, spec.Name, "%s: import it as recovery, so that the builtin stays usable", path)
				assert.Equal(t, "recovery", spec.Name.Name, path)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, files, 50, "too few files to be the whole project")
}
