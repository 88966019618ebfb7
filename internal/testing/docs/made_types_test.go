package docs

import (
	"fmt"
	"go/ast"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
)

// unprinted are members that only the record has: those of a check in flight, and a back-off's beginning by this machine's clock.
var unprinted = map[string][]string{"inbox.Check": {"since", "untold", "by"}, "inbox.Backoff": {"boot", "since_boot_ns"}}

// alias names types that encode themselves, as the type that says how.
var alias = map[string]string{"internal/money/price.Price": "inbox.Cost"}

// elsewhere are types whose words another page explains.
var elsewhere = map[string]string{
	"internal/see.Kind":          "[kind](operate.md#troubles)",
	"internal/see.Urgency":       "[urgency](operate.md#troubles)",
	"internal/notify.What":       "[what](operate.md#being-told)",
	"internal/fleet/verbs.state": "[state](fleet.md#nothing-moves)",
}

// member is one of an object, and what is said of it. Without a name it stands for those of another object.
type member struct{ name, text string }

// label is a link, and what it is called.
var label = regexp.MustCompile("^\\[`?([^`\\]]+)`?\\](\\([^)]+\\))$")

// bare is a member about which there is nothing to say here but where it is explained, "" if there is more.
func (f member) bare() string {
	if f.name == "" {
		return f.text
	}
	link := label.FindStringSubmatch(f.text)
	switch {
	case f.text == "":
		return "`" + f.name + "`"
	case link != nil && (link[1] == f.name || link[1] == f.name+"s"):
		return "[`" + f.name + "`]" + link[2]
	}
	return ""
}

// shape lists the members of the object that the types FOLDER.NAME make together. Those of which the same is said
// stand together.
func (m maker) shape(types []string) string {
	m.types = types
	var plain, others, texts []string
	with := map[string][]string{}
	for _, of := range types {
		for _, f := range m.members(of, types) {
			bare := f.bare()
			switch {
			case f.name == "":
				others = append(others, bare)
			case bare != "":
				plain = append(plain, bare)
			default:
				if with[f.text] == nil {
					texts = append(texts, f.text)
				}
				with[f.text] = append(with[f.text], f.name)
			}
		}
	}
	var items []string
	if plain = append(plain, others...); len(plain) > 0 {
		items = append(items, strings.Join(plain, ", "))
	}
	for _, text := range texts {
		items = append(items, spans(with[text])+": "+text)
	}
	return list(items)
}

// inline is the same within a sentence.
func (m maker) inline(of string, here []string) string {
	var all []string
	for _, f := range m.members(of, append(here, of)) {
		if bare := f.bare(); bare != "" {
			all = append(all, bare)
		} else {
			all = append(all, "`"+f.name+"` ("+f.text+")")
		}
	}
	return strings.Join(all, ", ")
}

// members are those of a structure. here are the structures that are being shown.
func (m maker) members(of string, here []string) (all []member) {
	m.t.Helper()
	dir, name := folderOf(of)
	declared, found := m.source.of(m.t, dir).types[name]
	require.True(m.t, found, "no type %s", of)
	structure, is := declared.expr.(*ast.StructType)
	require.True(m.t, is, "%s is no structure", of)
	for _, f := range structure.Fields.List {
		tag := ""
		if f.Tag != nil {
			text, err := strconv.Unquote(f.Tag.Value)
			require.NoError(m.t, err)
			tag, _, _ = strings.Cut(reflect.StructTag(text).Get("json"), ",")
		}
		if tag == "-" || slices.Contains(unprinted[of], tag) {
			continue
		}
		typ := named(dir, declared.imports, f.Type)
		if len(f.Names) == 0 && tag == "" {
			switch link := m.link(typ, here); {
			case link != "":
				all = append(all, member{"", "those of " + link})
			case m.isAbove(typ):
				all = append(all, member{"", "those above"})
			default:
				all = append(all, m.members(typ, here)...)
			}
			continue
		}
		if tag == "" {
			if tag = f.Names[0].Name; !ast.IsExported(tag) {
				continue
			}
		}
		text := said(f)
		if about := m.about(typ, here); strings.HasPrefix(text, "as ") || strings.HasPrefix(text, "the same") {
			// It stands for what is told elsewhere.
		} else if text == "" {
			text = about
		} else if about != "" {
			text += ": " + about
		}
		all = append(all, member{tag, text})
	}
	return all
}

// about says what a type of ours holds: a link to where that stands, its words or its members.
func (m maker) about(typ string, here []string) string {
	if link := elsewhere[typ]; link != "" {
		return link
	}
	if link := m.link(typ, here); link != "" || typ == "" || m.isAbove(typ) {
		return link
	}
	dir, name := folderOf(typ)
	room := m.source.of(m.t, dir)
	if words := room.words[name]; len(words) > 0 {
		var all []string
		for _, w := range words {
			all = append(all, w.text)
		}
		return spans(all)
	}
	if _, is := room.types[name].expr.(*ast.StructType); is {
		return m.inline(typ, here)
	}
	return ""
}

// words lists the words of a type.
func (m maker) words(of string) string {
	dir, name := folderOf(of)
	var plain, items []string
	for _, w := range m.source.of(m.t, dir).words[name] {
		if text := prose(w.comment); text == "" {
			plain = append(plain, w.text)
		} else {
			items = append(items, "`"+w.text+"`: "+text)
		}
	}
	require.NotEmpty(m.t, items, of)
	slices.Sort(plain)
	slices.Sort(items)
	if len(plain) > 0 {
		items = append([]string{spans(plain)}, items...)
	}
	return list(items)
}

// isAbove says whether the section that is being made has a part of this type of its own.
func (m maker) isAbove(typ string) bool {
	return !slices.Contains(m.types, typ) && strings.Contains(section(m.t, m.path, m.above), "\n<!--code: "+typ+"-->\n")
}

// link leads to the part of a document that is made from a type, if there is one.
func (m maker) link(typ string, here []string) string {
	if alias[typ] != "" {
		typ = alias[typ]
	}
	if typ == "" || slices.Contains(here, typ) && !slices.Equal(here, []string{typ}) {
		return ""
	}
	for _, path := range []string{"docs/json.md", "docs/reference.md"} {
		text, last := read(m.t, path), ""
		mark := regexp.MustCompile(`^<!--code: (words of )?` + regexp.QuoteMeta(typ) + `( .*)?-->`)
		for line := range strings.Lines(text) {
			if h := heading.FindStringSubmatch(strings.TrimSpace(line)); h != nil {
				last = h[1]
			}
			if !mark.MatchString(line) {
				continue
			}
			target := "#" + anchor(last)
			if strings.HasSuffix(m.above, "# "+last) {
				return ""
			}
			if path != m.path {
				target = filepath.Base(path) + target
			}
			name := last
			if first := codeSpan.FindString(last); first != "" {
				name = first
			}
			_, of := folderOf(typ)
			if own := "`" + strings.ToLower(of) + "`"; strings.Contains(last, own) {
				name = own
			}
			return fmt.Sprintf("[%s](%s)", strings.ToLower(name), target)
		}
	}
	return ""
}

// named is the type FOLDER.NAME that an expression leads to, by way of pointers, slices and maps; "" where it is none of ours.
func named(dir string, imports map[string]string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return named(dir, imports, e.X)
	case *ast.ArrayType:
		return named(dir, imports, e.Elt)
	case *ast.MapType:
		if key := named(dir, imports, e.Key); key != "" {
			return key
		}
		return named(dir, imports, e.Value)
	case *ast.Ident:
		if ast.IsExported(e.Name) || !basic[e.Name] {
			return dir + "." + e.Name
		}
	case *ast.SelectorExpr:
		if other, ours := imports[e.X.(*ast.Ident).Name]; ours {
			return other + "." + e.Sel.Name
		}
	}
	return ""
}

var basic = map[string]bool{
	"string": true, "bool": true, "int": true, "int64": true, "uint64": true, "float64": true, "any": true, "byte": true, "int32": true, "uint32": true, "uint": true,
}

func folderOf(typ string) (dir, name string) {
	i := strings.LastIndexByte(typ, '.')
	return typ[:max(i, 0)], typ[i+1:]
}

var (
	// subject begins a field's comment: "Reply is".
	subject = regexp.MustCompile(`^[A-Z]\w*(?: and [A-Z]\w*)* (?:is|are|says) `)
	quote   = regexp.MustCompile(`"([^"]+)"`)
	code    = regexp.MustCompile(`--[a-z][a-z-]+|\b[a-z]+_[a-z_]+\b|\B\.[a-z][a-z.-]*[a-z]`)
	// forGo is what a comment says to readers of the code alone.
	forGo = regexp.MustCompile(`(?:: see|^as in a) \[[^]]*\]|: see [A-Z]\w*$|,? (?:or )?nil(?: for| if| or)?[^.;:,]*|, or ""`)
)

// said is what the code says of a field: behind it, or else in the first sentence above it.
func said(f *ast.Field) string {
	if text := remark(f.Comment); text != "" {
		return prose(text)
	}
	text, _, _ := strings.Cut(remark(f.Doc), ". ")
	return prose(subject.ReplaceAllString(text, ""))
}

// prose is a comment as a document has it, with code spans.
func prose(text string) string {
	text = strings.TrimRight(forGo.ReplaceAllString(text, ""), ".")
	parts := strings.Split(quote.ReplaceAllString(text, "`$1`"), "`")
	for i := 0; i < len(parts); i += 2 { // the others are spans
		parts[i] = code.ReplaceAllString(parts[i], "`$0`")
	}
	return strings.Join(parts, "`")
}
