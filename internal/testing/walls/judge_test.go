package walls

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// judged are facts that only internal/see may make something of, for who tells a person: the words
// for them stand there, once.
var judged = []string{"GaveUp", "Uncounted", "EverAsked", "Woken", "Prompted", "Replaced", "Anew", "Interrupted"}

// tellers tell a person how an inbox stands: the verbs, and the reports of launcher, host and fleet.
var tellers = []string{
	"internal/command/status*.go", "internal/command/doctor.go", "internal/command/doctor/*.go", "internal/command/metrics/*.go",
	"internal/notify/*.go", "internal/watch/*.go", "internal/mcp/*.go",
	"internal/launch/*.go", "internal/hosting/*.go", "internal/fleet/verbs/*.go", "internal/fleet/worker/tell.go",
}

// styled shows what is being waited for in a color: no trouble, so that no row has an urgency.
const styled = "internal/watch/draw.go"

// eachNode calls visit for each node of the shipped files of a pattern.
func eachNode(t *testing.T, pattern string, visit func(name string, file *ast.File, n ast.Node)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../../..", pattern))
	require.NoError(t, err)
	require.NotEmpty(t, paths, pattern)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		name, err := filepath.Rel("../../..", path)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			visit(name, file, n)
			return true
		})
	}
}

// What is wrong with an inbox is judged in internal/see: whoever tells of it reads the troubles,
// and works out none by itself, neither from the facts nor by the names of states.
func TestOneJudge(t *testing.T) {
	var states []string
	eachNode(t, "internal/see/explain.go", func(_ string, _ *ast.File, n ast.Node) {
		if spec, is := n.(*ast.ValueSpec); is {
			if of, is := spec.Type.(*ast.Ident); is && of.Name == "State" {
				states = append(states, spec.Names[0].Name)
			}
		}
	})
	require.NotEmpty(t, states)
	for _, pattern := range tellers {
		eachNode(t, pattern, func(name string, file *ast.File, n ast.Node) {
			s, is := n.(*ast.SelectorExpr)
			if !is {
				return
			}
			of, _ := s.X.(*ast.Ident)
			if of != nil && of.Name == "see" && name != styled && s.Sel.Name != "Unreadable" {
				assert.NotContains(t, states, s.Sel.Name, "%s decides by a state: internal/see says what that means", name)
			}
			if imported := of != nil && isImport(file, of.Name); !imported && slices.Contains(judged, s.Sel.Name) {
				assert.Fail(t, name+" makes something of "+s.Sel.Name+": internal/see says what that means")
			}
		})
	}
}

// isImport reports whether a file knows a package by that name.
func isImport(file *ast.File, name string) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
		return i.Name != nil && i.Name.Name == name || i.Name == nil && strings.HasSuffix(i.Path.Value, "/"+name+`"`)
	})
}

// Nobody but internal/see makes a trouble, or a row of their table.
func TestOneMakerOfTroubles(t *testing.T) {
	files, err := shippedFiles()
	require.NoError(t, err)
	made := regexp.MustCompile(`^see\.(Trouble|About|Row)\{`)
	for _, f := range files {
		if f.pkg == "internal/see" {
			continue
		}
		pattern, err := filepath.Rel(root(t), f.path)
		require.NoError(t, err)
		eachNode(t, pattern, func(name string, _ *ast.File, n ast.Node) {
			lit, is := n.(*ast.CompositeLit)
			if !is {
				return
			}
			if of, is := lit.Type.(*ast.SelectorExpr); is {
				if pkg, is := of.X.(*ast.Ident); is {
					assert.NotRegexp(t, made, pkg.Name+"."+of.Sel.Name+"{", "%s makes one", name)
				}
			}
		})
	}
}

func root(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../..")
	require.NoError(t, err)
	return path
}
