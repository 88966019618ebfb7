// Package walls tests what may import what, and which files may be opened how.
package walls

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "heartbeat/"

// TestImports reads every file that is no test.
func TestImports(t *testing.T) {
	files, found, err := breaches("../../..", allowed)
	require.NoError(t, err)
	assert.Empty(t, found)
	assert.Greater(t, files, 50, "too few files to be the whole project")
}

// TestTheListIsTrue keeps the list from naming packages that are gone.
func TestTheListIsTrue(t *testing.T) {
	for _, name := range gone("../../..", allowed) {
		assert.Fail(t, "allowed_test.go names "+name+", which is no folder with Go files: take it out, or rename it")
	}
	assert.Equal(t, []string{"below/disk", "queue", "rooms/..."}, gone(t.TempDir(), map[string]string{
		"queue": "below/disk", "rooms/...": "",
	}))
}

// gone are the packages and trees that a list names and that are not there.
func gone(root string, list map[string]string) []string {
	missing := map[string]bool{}
	for pkg, line := range list {
		for _, name := range append(strings.Fields(line), pkg) {
			dir, tree := strings.CutSuffix(name, "/...")
			pattern := filepath.Join(root, dir, "*.go")
			if tree {
				pattern = filepath.Join(root, dir)
			}
			if there, _ := filepath.Glob(pattern); len(there) == 0 {
				missing[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

func TestABreachIsFound(t *testing.T) {
	list := map[string]string{
		"queue":     "below/disk",
		"rooms/...": "below/...",
	}
	const ours = `"` + module
	tests := map[string]struct {
		file, imports string
		want          string
	}{
		"allowed":            {"queue/a.go", ours + `below/disk"`, ""},
		"not ours":           {"queue/a.go", `"fmt"`, ""},
		"not allowed":        {"queue/a.go", ours + `claude"`, "queue/a.go: queue may not import claude"},
		"a folder below":     {"queue/a.go", ours + `below/disk/deep"`, "queue/a.go: queue may not import below/disk/deep"},
		"its own folder":     {"queue/a.go", ours + `queue/part"`, "queue/a.go: queue may not import queue/part"},
		"a longer name":      {"queue/a.go", ours + `below/disks"`, "queue/a.go: queue may not import below/disks"},
		"whole tree allowed": {"rooms/one/a.go", ours + `below/disk/deep"`, ""},
		"tree is not a name": {"rooms/one/a.go", ours + `belowground"`, "rooms/one/a.go: rooms/one may not import belowground"},
		"package not listed": {"new/a.go", ours + `below/disk"`, "new/a.go: new is not listed"},
		"test files may":     {"queue/a_test.go", ours + `claude"`, ""},
		"recover unnamed":    {"rooms/a.go", ours + `recover"`, "rooms/a.go: rooms may not import recover; rooms/a.go: recover hides a builtin"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, filepath.FromSlash(tc.file))
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte("package a\n\nimport "+tc.imports+"\n"), 0o644))
			_, found, err := breaches(dir, list)
			require.NoError(t, err)
			var want []string
			if tc.want != "" {
				want = strings.Split(tc.want, "; ")
			}
			require.Len(t, found, len(want), "%q", found)
			for i := range want {
				assert.True(t, strings.HasPrefix(found[i], want[i]), "%q, want %q", found[i], want[i])
			}
		})
	}
}

// breaches lists the imports below root that the list does not allow.
func breaches(root string, list map[string]string) (files int, found []string, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		files++
		name, err = filepath.Rel(root, name)
		if err != nil {
			return err
		}
		found = append(found, fileBreaches(filepath.ToSlash(name), file, list)...)
		return nil
	})
	return files, found, err
}

func fileBreaches(name string, file *ast.File, list map[string]string) (found []string) {
	pkg := path.Dir(name)
	may, listed := rule(pkg, list)
	for _, spec := range file.Imports {
		quoted, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		imported, ours := strings.CutPrefix(quoted, module)
		switch {
		case !ours:
			continue
		case !listed:
			return []string{fmt.Sprintf("%s: %s is not listed: add it to allowed_test.go with what it may import", name, pkg)}
		case !covered(imported, may):
			found = append(found, fmt.Sprintf("%s: %s may not import %s (see allowed_test.go)", name, pkg, imported))
		}
		if imported == "recover" && (spec.Name == nil || spec.Name.Name != "recovery") {
			found = append(found, fmt.Sprintf("%s: recover hides a builtin: import it as recovery", name))
		}
	}
	return found
}

// rule is the line of the list for a package.
func rule(pkg string, list map[string]string) (may []string, listed bool) {
	if line, ok := list[pkg]; ok {
		return strings.Fields(line), true
	}
	for dir := pkg; dir != "."; dir = path.Dir(dir) {
		if line, ok := list[dir+"/..."]; ok {
			return strings.Fields(line), true
		}
	}
	return nil, false
}

func covered(imported string, may []string) bool {
	for _, pattern := range may {
		dir, tree := strings.CutSuffix(pattern, "/...")
		if imported == dir || tree && strings.HasPrefix(imported, dir+"/") {
			return true
		}
	}
	return false
}
