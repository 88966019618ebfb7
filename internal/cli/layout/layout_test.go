package layout_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli/colour"
	"heartbeat/internal/cli/layout"
)

// at prints to an Output of that width, without colour.
func at(t *testing.T, width int, show func(layout.Output) error) string {
	t.Helper()
	var b bytes.Buffer
	o := layout.For(&b, colour.Never)
	o.Width = width
	require.NoError(t, show(o))
	return b.String()
}

func TestWrap(t *testing.T) {
	for name, tt := range map[string]struct {
		text  string
		width int
		want  []string
	}{
		"fits":                   {"one two", 7, []string{"one two"}},
		"between words":          {"one two three", 8, []string{"one two", "three"}},
		"no limit":               {"one two three", 0, []string{"one two three"}},
		"own lines stay":         {"one\n\ntwo three", 4, []string{"one", "", "two", "three"}},
		"indentation is kept":    {"  one two three", 9, []string{"  one two", "  three"}},
		"blanks of a short line": {"a   b", 9, []string{"a   b"}},
		"a path stays whole":     {"see /var/lib/heartbeat now", 8, []string{"see", "/var/lib/heartbeat", "now"}},
		"wide characters":        {"日本語の文章", 5, []string{"日本", "語の", "文章"}},
		"combining marks":        {"e\u0301e\u0301e\u0301", 2, []string{"e\u0301e\u0301", "e\u0301"}},
		"wider than the line":    {"日本", 1, []string{"日本"}},
		"empty":                  {"", 5, []string{""}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, layout.Wrap(tt.text, tt.width)) })
	}
}

func TestCut(t *testing.T) {
	for text, want := range map[string]string{
		"short": "short", "exactly8": "exactly8", "far too long": "far too…", "one two three": "one two…",
		"日本語の文章": "日本語…", "": "", "👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦": "👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦…",
	} {
		assert.Equal(t, want, layout.Cut(text, 8))
		assert.LessOrEqual(t, layout.Width(layout.Cut(text, 8)), 8)
	}
	assert.Empty(t, layout.Cut("text", 0))
}

func example(text layout.Column) *layout.Table {
	t := layout.NewTable(layout.Column{Title: "ID"}, layout.Column{Title: "SIZE", Right: true}, text)
	t.Add("日本", "12 B", "an entry with a prompt of some length")
	t.Add("job-2", "3.4 MB", "short\x1b[2J\nstill the same line")
	t.Add("job-3")
	return t
}

func TestTable(t *testing.T) {
	for name, tt := range map[string]struct {
		column layout.Column
		width  int
		want   string
	}{
		"no limit": {layout.Column{Title: "PROMPT", Text: true}, 0, `
ID       SIZE  PROMPT
日本     12 B  an entry with a prompt of some length
job-2  3.4 MB  short\u001b[2J still the same line
job-3
`},
		"wrapped": {layout.Column{Title: "PROMPT", Text: true}, 38, `
ID       SIZE  PROMPT
日本     12 B  an entry with a prompt
               of some length
job-2  3.4 MB  short\u001b[2J still
               the same line
job-3
`},
		"cut": {layout.Column{Title: "PROMPT", Text: true, Cut: true}, 38, `
ID       SIZE  PROMPT
日本     12 B  an entry with a prompt…
job-2  3.4 MB  short\u001b[2J still t…
job-3
`},
		"far too narrow": {layout.Column{Title: "PROMPT", Text: true, Cut: true}, 5, `
ID       SIZE  PROMPT
日本     12 B  an entry with a…
job-2  3.4 MB  short\u001b[2J…
job-3
`},
		"nothing gives way": {layout.Column{Title: "PROMPT"}, 20, `
ID       SIZE  PROMPT
日本     12 B  an entry with a prompt of some length
job-2  3.4 MB  short\u001b[2J still the same line
job-3
`},
	} {
		t.Run(name, func(t *testing.T) {
			shown := at(t, tt.width, func(o layout.Output) error { return o.Table(example(tt.column)) })
			assert.Equal(t, strings.TrimPrefix(tt.want, "\n"), shown)
		})
	}
}

func TestTableWithoutTitles(t *testing.T) {
	table := layout.NewTable(layout.Column{}, layout.Column{Text: true})
	assert.True(t, table.Empty())
	table.Add("queued", "3 entries, 1.2 kB")
	table.Add("why", "session 0123 answers the entry job-1")
	assert.False(t, table.Empty())
	assert.Equal(t, "queued  3 entries, 1.2\n        kB\nwhy     session 0123\n        answers the\n        entry job-1\n",
		at(t, 24, func(o layout.Output) error { return o.Table(table) }))
}

func TestTablePaintsCells(t *testing.T) {
	var b bytes.Buffer
	table := layout.NewTable(
		layout.Column{Title: "STATE", Style: func(cell string) colour.Style {
			if cell == "fail" {
				return colour.Red
			}
			return colour.Plain
		}},
		layout.Column{Title: "N", Right: true})
	table.Add("ok", "1")
	table.Add("fail", "20")
	require.NoError(t, layout.For(&b, colour.Always).Table(table))
	assert.Equal(t, "\x1b[1mSTATE\x1b[m   \x1b[1mN\x1b[m\nok      1\n\x1b[31mfail\x1b[m   20\n", b.String())
}

func TestText(t *testing.T) {
	assert.Equal(t, "delivery is\npaused\\u0007\n", at(t, 14, func(o layout.Output) error {
		return o.Text(colour.Plain, "delivery is paused\x07\n")
	}))
	var b bytes.Buffer
	require.NoError(t, layout.For(&b, colour.Always).Text(colour.Yellow, "one\ntwo"))
	assert.Equal(t, "\x1b[33mone\x1b[m\n\x1b[33mtwo\x1b[m\n", b.String())
}

func TestOutputKnowsTheTerminal(t *testing.T) {
	control, terminal, err := pty.Open()
	require.NoError(t, err)
	defer func() { assert.NoError(t, control.Close()) }()
	require.NoError(t, pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: 20}))
	o := layout.For(terminal, colour.Never)
	assert.Equal(t, 20, o.Width)
	require.NoError(t, o.Text(colour.Plain, "a sentence that is too long"))
	require.NoError(t, terminal.Close())
	shown, _ := io.ReadAll(control) // it ends with EIO once the other end is closed
	assert.Equal(t, "a sentence that is\r\ntoo long\r\n", string(shown))
	assert.Zero(t, layout.For(&bytes.Buffer{}, colour.Auto).Width)
}

// FuzzWrap checks that wrapping loses no word, and that no line that could be
// broken is too long.
func FuzzWrap(f *testing.F) {
	f.Add("one two  three\n 日本語", 5)
	f.Fuzz(func(t *testing.T, text string, width int) {
		width %= 100
		lines := layout.Wrap(text, width)
		assert.Equal(t, strings.Join(strings.Fields(text), ""), strings.Join(strings.Fields(strings.Join(lines, " ")), ""))
		for _, line := range lines {
			if width > 0 && layout.Width(line) > width {
				assert.LessOrEqual(t, len(strings.Fields(line)), 1, "%q", line)
			}
		}
	})
}
