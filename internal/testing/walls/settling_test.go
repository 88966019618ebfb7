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

// settling are the methods of a transaction that settle an entry, or give it back.
var settling = []string{
	"Acknowledge", "AcknowledgeWith", "DeadLetter", "DeadLetterFor", "Drop", "GiveBack", "PutOff",
	"Refuse", "ResolveElsewhere",
}

// What becomes of an entry is decided in the package recover alone: every other one that is
// shipped calls its entrances.
func TestFateIsDecidedInOneRoom(t *testing.T) {
	found, err := settlers("../../..")
	require.NoError(t, err)
	assert.Empty(t, found)

	found, err = settlers("testdata/settlers")
	require.NoError(t, err)
	assert.Equal(t, []string{"hook/a.go: tx.GiveBack"}, found, "the test finds what it is for")
}

func settlers(root string) (found []string, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		rel = filepath.ToSlash(rel)
		free := []string{"inbox", "recover", "internal/bench", "internal/testing", "testdata"}
		if d.IsDir() {
			if slices.Contains(free, rel) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			of, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(settling, of.Sel.Name) {
				return true
			}
			// By convention a transaction is called tx; other things have methods of these names.
			if on, ok := of.X.(*ast.Ident); ok && on.Name == "tx" || strings.HasSuffix(exprName(of.X), ".tx") {
				found = append(found, rel+": tx."+of.Sel.Name)
			}
			return true
		})
		return nil
	})
	return found, err
}

func exprName(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return exprName(s.X) + "." + s.Sel.Name
	}
	if i, ok := e.(*ast.Ident); ok {
		return i.Name
	}
	return ""
}
