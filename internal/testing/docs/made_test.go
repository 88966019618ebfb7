package docs

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	update = flag.Bool("update", false, "write the parts of the documents that are made from the code")
	// made is a part that the code writes: what it is made of, and its text, down to an empty line.
	made = regexp.MustCompile(`(?m)^<!--code: ([^\n]+)-->\n((?:[^\n]+\n)*)`)
)

// What stands below a mark, as "<!--code: inbox.Result-->", is what the code says.
func TestMade(t *testing.T) {
	m, found := maker{t: t, helps: helps{}, source: source{}}, 0
	for _, path := range documents(t) {
		text := read(t, path)
		m.path, m.above = path, ""
		now, rest := "", text
		for {
			at := made.FindStringSubmatchIndex(rest)
			if at == nil {
				break
			}
			found++
			if headings := heading.FindAllString(rest[:at[0]], -1); len(headings) > 0 {
				m.above = headings[len(headings)-1]
			}
			of := rest[at[2]:at[3]]
			part := m.make(of)
			if !*update {
				assert.Equal(t, part, rest[at[4]:at[5]], "%s, %s differs from the code: go test ./internal/testing/docs -run Made -update", path, of)
			}
			now += rest[:at[4]] + part
			rest = rest[at[1]:]
		}
		now += rest
		if *update && now != text {
			require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(now), 0o644))
		}
	}
	assert.NotZero(t, found)
}

// maker makes parts of documents.
type maker struct {
	t      *testing.T
	path   string   // the document that is being made
	above  string   // the last heading before the part
	types  []string // what the part is made of
	helps  helps
	source source
}

// make is the text of a part, by the words in its mark.
func (m maker) make(of string) string {
	kind, arg, _ := strings.Cut(of, ": ")
	switch {
	case kind == "verbs":
		return m.verbs(arg)
	case kind == "flags":
		return m.flags(arg)
	case kind == "exit statuses":
		return m.statuses(arg)
	case kind == "files":
		return m.files()
	case kind == "metrics":
		return m.metrics()
	case strings.HasPrefix(of, "words of "):
		return m.words(strings.TrimPrefix(of, "words of "))
	}
	return m.shape(strings.Fields(of))
}

// list is lines of a Markdown list.
func list(items []string) string {
	text := ""
	for _, item := range items {
		text += "- " + item + "\n"
	}
	return text
}

// spans are code spans with commas between them.
func spans(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
