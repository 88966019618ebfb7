package docs

import (
	"go/ast"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shapes says which structures sections that are written by hand describe. The section of prices counts for each.
var shapes = []struct {
	section string
	types   []string // FOLDER.TYPE
	also    []string // sections that this one refers to
}{
	{"docs/advanced/host.md: ## State record", []string{"internal/hosting/folder.State"}, []string{"docs/host.md: ## Reports"}},
	{"docs/host.md: ## Reports", []string{"internal/hosting/guild.Record", "internal/hosting/guild.Running"}, nil},
}

var (
	jsonSpan = regexp.MustCompile("[`\"]([a-z][A-Za-z0-9_]*)[`\"]")
	// memberLike tells a member's name from most words.
	memberLike = regexp.MustCompile("`([a-z]+(?:_[a-z0-9]+)+)`")
	// writtenWord is such a name as a tag or a string of the code.
	writtenWord = regexp.MustCompile(`"([a-z]+(?:_[a-z0-9]+)+)[",]`)
)

// inDoc splits "PATH: HEADING". Without a path it is docs/json.md.
func inDoc(s string) (path, heading string) {
	if path, heading, found := strings.Cut(s, ": "); found {
		return path, heading
	}
	return "docs/json.md", s
}

// The documents have each member that a verb prints or a file holds, in the section of that verb or file.
func TestJSONHasEachMember(t *testing.T) {
	all := source{}
	for _, of := range shapes {
		said := map[string]bool{}
		for _, heading := range append([]string{of.section, "## Prices"}, of.also...) {
			doc, heading := inDoc(heading)
			for _, m := range jsonSpan.FindAllStringSubmatch(section(t, doc, heading), -1) {
				said[m[1]] = true
			}
		}
		for _, name := range of.types {
			r := reading{t, all, map[string]bool{}, map[string]bool{}}
			i := strings.LastIndexByte(name, '.')
			r.named(name[:i], name[i+1:])
			require.NotEmpty(t, r.names, name)
			for m := range r.names {
				assert.True(t, said[m], "%s lacks %s of %s", of.section, m, name)
			}
		}
	}
}

// json.md has a section for each verb that prints JSON.
func TestJSONHasEachVerb(t *testing.T) {
	var headings []string
	for _, h := range heading.FindAllStringSubmatch(read(t, "docs/json.md"), -1) {
		headings = append(headings, codeSpan.FindAllString(h[1], -1)...)
	}
	h := helps{}
	for _, v := range verbs(t) {
		if strings.Contains(h.of(t, "heartbeat", v), "--json") && v != "watch" { // only watch --once prints JSON
			assert.Contains(t, headings, "`"+v+"`")
		}
	}
}

// Each member that json.md names is in the code, as a tag or as a word that is written.
func TestJSONNamesNoMemberThatIsGone(t *testing.T) {
	written := inShipped(t, writtenWord)
	for _, m := range memberLike.FindAllStringSubmatch(read(t, "docs/json.md"), -1) {
		assert.True(t, written[m[1]], "docs/json.md has %s, and no code writes that", m[1])
	}
}

// reading collects the names of the members of types, and of their members' types.
type reading struct {
	t      *testing.T
	source source
	names  map[string]bool
	seen   map[string]bool // FOLDER.TYPE
}

func (r reading) named(dir, name string) {
	r.t.Helper()
	full := dir + "." + name
	// docs/json.md has a section of prices.
	if dir == "internal/money/price" || r.seen[full] {
		return
	}
	r.seen[full] = true
	of, found := r.source.of(r.t, dir).types[name]
	if !found {
		r.t.Fatalf("%s has no type %s", dir, name)
	}
	r.walk(dir, name, of.imports, of.expr)
}

func (r reading) walk(dir, name string, imports map[string]string, e ast.Expr) {
	switch e := e.(type) {
	case *ast.StarExpr:
		r.walk(dir, name, imports, e.X)
	case *ast.ArrayType:
		r.walk(dir, name, imports, e.Elt)
	case *ast.MapType:
		r.walk(dir, name, imports, e.Value)
	case *ast.Ident:
		if _, here := r.source.of(r.t, dir).types[e.Name]; here {
			r.named(dir, e.Name)
		}
	case *ast.SelectorExpr:
		if other, ours := imports[e.X.(*ast.Ident).Name]; ours {
			r.named(other, e.Sel.Name)
		}
	case *ast.StructType:
		for _, f := range e.Fields.List {
			tag := ""
			if f.Tag != nil {
				text, err := strconv.Unquote(f.Tag.Value)
				require.NoError(r.t, err)
				tag, _, _ = strings.Cut(reflect.StructTag(text).Get("json"), ",")
			}
			switch {
			case tag == "-", slices.Contains(unprinted[dir+"."+name], tag):
				continue
			case len(f.Names) == 0: // its members are members of this structure
			case tag != "":
				r.names[tag] = true
			case f.Names[0].IsExported():
				r.names[f.Names[0].Name] = true
			default:
				continue
			}
			r.walk(dir, name, imports, f.Type)
		}
	}
}
