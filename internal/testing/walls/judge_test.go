package walls

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// judged are what only internal/see may make something of, for who tells a person: the words
// for it stand there, once. A file that shows one of them as data is named.
var judged = map[string]string{
	"GaveUp":    "",
	"Uncounted": "",
	"EverAsked": "",
	"Woken":     "",
	"Prompted":  "",
	"Replaced":  "",
}

// tellers are the rooms that tell a person how an inbox stands.
var tellers = []string{"internal/command/status.go", "internal/command/status_table.go", "internal/command/doctor.go", "internal/command/metrics", "internal/notify", "internal/watch", "internal/mcp"}

// What is wrong with an inbox is judged in internal/see: whoever tells of it reads the troubles,
// and works out none by itself.
func TestOneJudge(t *testing.T) {
	for _, room := range tellers {
		files := []string{filepath.Join("../../..", room)}
		if !strings.HasSuffix(room, ".go") {
			var err error
			files, err = filepath.Glob(filepath.Join("../../..", room, "*.go"))
			require.NoError(t, err)
			deeper, err := filepath.Glob(filepath.Join("../../..", room, "*/*.go"))
			require.NoError(t, err)
			files = append(files, deeper...)
		}
		require.NotEmpty(t, files, room)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			require.NoError(t, err)
			name, err := filepath.Rel("../../..", path)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				if s, is := n.(*ast.SelectorExpr); is {
					if shown, rule := judged[s.Sel.Name]; rule && !strings.Contains(shown, name) {
						assert.Fail(t, name+" makes something of "+s.Sel.Name+": internal/see says what that means")
					}
				}
				return true
			})
		}
	}
}
