package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source is the shipped code as far as it was parsed, by folder.
type source map[string]room

type room struct {
	types map[string]declared
	words map[string][]word // the string constants of each type
	docs  map[string]string // what stands above each type
}

// declared is a type, and what its file calls the packages that it imports.
type declared struct {
	expr    ast.Expr
	imports map[string]string // name → folder
}

// word is a constant, and what stands behind it.
type word struct{ text, comment string }

// of parses a folder's shipped files once.
func (s source) of(t *testing.T, dir string) room {
	t.Helper()
	if parsed, done := s[dir]; done {
		return parsed
	}
	found := room{map[string]declared{}, map[string][]word{}, map[string]string{}}
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	require.NoError(t, err)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution|parser.ParseComments)
		require.NoError(t, err)
		imports := map[string]string{}
		for _, i := range file.Imports {
			ours, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "heartbeat/")
			if !ok {
				continue
			}
			name := filepath.Base(ours)
			if i.Name != nil {
				name = i.Name.Name
			}
			imports[name] = ours
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				for _, spec := range g.Specs {
					found.add(t, spec, imports)
					if typ, ok := spec.(*ast.TypeSpec); ok {
						found.docs[typ.Name.Name] = remark(g.Doc)
					}
				}
			}
		}
	}
	s[dir] = found
	return found
}

func (r room) add(t *testing.T, spec ast.Spec, imports map[string]string) {
	t.Helper()
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		r.types[spec.Name.Name] = declared{spec.Type, imports}
	case *ast.ValueSpec:
		of, ok := spec.Type.(*ast.Ident)
		if !ok || len(spec.Values) != 1 {
			return
		}
		if v, ok := spec.Values[0].(*ast.BasicLit); ok && v.Kind == token.STRING {
			text, err := strconv.Unquote(v.Value)
			require.NoError(t, err)
			r.words[of.Name] = append(r.words[of.Name], word{text, remark(spec.Comment)})
		}
	}
}

// remark is the text of a comment in one line.
func remark(of *ast.CommentGroup) string { return strings.Join(strings.Fields(of.Text()), " ") }
