package walls

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// opens are the calls that open a file without the guards of internal/disk: they
// wait for a FIFO's writer, follow links, or read without end.
var opens = []string{
	"os.ReadFile", "os.Open", "os.OpenFile",
	"unix.Open", "unix.Openat", "syscall.Open",
}

// openers are who may use them, and why.
var openers = map[string]string{
	"internal/disk":                               "it is where the guards are",
	"internal/claude/settings":                    "settings are written in place of the old file, and their directory is synced",
	"internal/launch/log.go":                      "the log is opened without waiting and without following a link",
	"internal/machine/guardian/terminal_linux.go": "a terminal is opened without waiting, without following a link, and by its device number",
	"internal/machine/socket/socket.go":           "a folder is opened, by which the socket in it is reached",
	"internal/machine/machine_linux.go":           "the files of /proc are read by plain calls: the hook passes there at each delivery",
	"internal/command/batch.go":                   "a person names the file, which may be a pipe",
	"internal/command/init.go":                    "a folder is opened, to be locked",

	"internal/testing": tools, "internal/bench": tools,
}

const tools = "a tool of the tests, which reads its own files"

// TestReads holds every read of a file that others can write to internal/disk.
func TestReads(t *testing.T) {
	used := map[string]bool{}
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, "../../../"))
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !slices.Contains(opens, called(call)) || ofKernel(call) {
				return true
			}
			who := opener(name)
			used[who] = true
			assert.NotEmpty(t, who, "%s: %s: use heartbeat/internal/disk, or say in this test why not",
				files.Position(call.Pos()), called(call))
			return true
		})
		return nil
	})
	require.NoError(t, err)
	for who := range openers {
		assert.True(t, used[who], "%s opens no file: take it out of this test", who)
	}
}

func called(call *ast.CallExpr) string {
	if s, ok := call.Fun.(*ast.SelectorExpr); ok {
		if pkg, ok := s.X.(*ast.Ident); ok {
			return pkg.Name + "." + s.Sel.Name
		}
	}
	return ""
}

// ofKernel reports whether the file is one that only the system writes.
func ofKernel(call *ast.CallExpr) (is bool) {
	ast.Inspect(call, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			is = is || strings.HasPrefix(n.Value, `"/proc/`) || n.Value == `"/proc"` || strings.HasPrefix(n.Value, `"/dev/`)
		case *ast.SelectorExpr:
			is = is || n.Sel.Name == "DevNull"
		}
		return !is
	})
	return is
}

func opener(name string) string {
	for who := range openers {
		if name == who || strings.HasPrefix(name, who+"/") {
			return who
		}
	}
	return ""
}
