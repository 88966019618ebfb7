package layout_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli/layout"
	"heartbeat/internal/words"
)

// at returns what is printed to an Output of that width without colour.
func at(t *testing.T, width int, show func(layout.Output) error) string {
	t.Helper()
	var b bytes.Buffer
	o := layout.For(&b, layout.Never)
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

func TestBreak(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "abc": {"abc"}, "abcdefgh": {"abc", "def", "gh"}, "日本語": {"日", "本", "語"}, "e\u0301e\u0301e\u0301e\u0301": {"e\u0301e\u0301e\u0301", "e\u0301"},
	} {
		assert.Equal(t, want, layout.Break(text, 3), text)
	}
	assert.Equal(t, []string{"日", "本"}, layout.Break("日本", 1), "wider than a line")
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
		"for a program": {layout.Column{Title: "PROMPT", Text: true}, 0, "" +
			"日本\t12 B\tan entry with a prompt of some length\n" +
			"job-2\t3.4 MB\tshort\\u001b[2J still the same line\n" +
			"job-3\t\t\n"},
		"wide enough": {layout.Column{Title: "PROMPT", Text: true}, 80, `
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
	assert.Zero(t, table.Len())
	table.Add("queued", "3 entries, 1.2 kB")
	table.Add("why", "session 0123 answers the entry job-1")
	assert.NotZero(t, table.Len())
	assert.Equal(t, "queued  3 entries, 1.2\n        kB\nwhy     session 0123\n        answers the\n        entry job-1\n",
		at(t, 24, func(o layout.Output) error { return o.Table(table) }))
}

func TestTablePaintsCells(t *testing.T) {
	var b bytes.Buffer
	table := layout.NewTable(
		layout.Column{Title: "STATE", Style: func(cell string) layout.Style {
			if cell == "fail" {
				return layout.Red
			}
			return layout.Plain
		}},
		layout.Column{Title: "N", Right: true})
	table.Add("ok", "1")
	table.Add("fail", "20")
	o := layout.For(&b, layout.Always)
	o.Width = 80
	require.NoError(t, o.Table(table))
	assert.Equal(t, "\x1b[1mSTATE\x1b[m   \x1b[1mN\x1b[m\nok      1\n\x1b[31mfail\x1b[m   20\n", b.String())
}

// Text columns share the room that the others leave.
func TestTableWithTwoTexts(t *testing.T) {
	table := layout.NewTable(layout.Column{Title: "N"}, layout.Column{Title: "PROMPT", Text: true, Cut: true}, layout.Column{Title: "REPLY", Text: true, Cut: true})
	table.Add("1", "a short prompt", strings.Repeat("a long reply ", 9))
	table.Add("2", strings.Repeat("long ", 9), "short")
	shown := at(t, 50, func(o layout.Output) error { return o.Table(table) })
	assert.Equal(t, `
N  PROMPT                   REPLY
1  a short prompt           a long reply a long r…
2  long long long long lo…  short
`, "\n"+shown)
}

// Text to copy stays on one line.
func TestTableWithAWholeRow(t *testing.T) {
	table := layout.NewTable(layout.Column{}, layout.Column{Text: true})
	table.Add("fail", "a sentence of some length")
	table.AddWhole("", "chmod go-w /a/long/path")
	table.AddLine("ok", "another sentence that is long")
	assert.Equal(t, "fail  a sentence of\n      some length\n      chmod go-w /a/long/path\nok    another sentence…\n",
		at(t, 23, func(o layout.Output) error { return o.Table(table) }))
}

// A column is shown if any of its cells has text.
func TestTableLeavesOutAColumn(t *testing.T) {
	table := layout.NewTable(layout.Column{Title: "A"}, layout.Column{Title: "NOTE", IfAny: true}, layout.Column{Title: "B"})
	table.Add("1", "", "2")
	assert.Equal(t, "A  B\n1  2\n", at(t, 80, func(o layout.Output) error { return o.Table(table) }))
	table = layout.NewTable(layout.Column{Title: "A"}, layout.Column{Title: "NOTE", IfAny: true}, layout.Column{Title: "B"})
	table.Add("1", "", "2")
	assert.Equal(t, "1\t\t2\n", at(t, 0, func(o layout.Output) error { return o.Table(table) }), "programs count columns")
}

// A column that was added late does not change the rows that programs know.
func TestLateColumn(t *testing.T) {
	table := layout.NewTable(layout.Column{Title: "A"}, layout.Column{Title: "B"}, layout.Column{Title: "COST", IfAny: true, Late: true})
	table.Add("1", "", "")
	table.Add("2", "", "0.5")
	assert.Equal(t, "1\t\n2\t\t0.5\n", at(t, 0, func(o layout.Output) error { return o.Table(table) }))
}

// A table continues under its titles, at their widths.
func TestTableGoesOn(t *testing.T) {
	table := layout.NewTable(layout.Column{Title: "EVENT", Least: 9}, layout.Column{Title: "ENTRY"})
	shown := at(t, 80, func(o layout.Output) error {
		require.NoError(t, o.Table(table))
		table.Add("queued", "job-1")
		table.Add("delivered", "job-1")
		require.NoError(t, o.Table(table))
		assert.Zero(t, table.Len())
		table.Add("answered", "2")
		return o.Table(table)
	})
	assert.Equal(t, "EVENT      ENTRY\nqueued     job-1\ndelivered  job-1\nanswered   2\n", shown)
}

// FuzzTable checks that no cell moves the column behind it, whatever the cell contains.
func FuzzTable(f *testing.F) {
	for _, cell := range []string{
		"job-1", "\x1b[2J\x1b[31m", "a\nb\rc\td", "日本語の文章と名前", "e\u0301\u0301\u0301", "\u200b\u200d\u200d", "\u202eabc\u2066", "שלום",
		"👩‍👩‍👧‍👦👩‍👩‍👧‍👦", "\xff\xc3", strings.Repeat("x", 99), "", "🇩🇪🇩🇪", "\u115f\u1160",
	} {
		f.Add(cell, 40)
	}
	f.Fuzz(func(t *testing.T, cell string, width int) {
		width = 30 + abs(width)%90
		table := layout.NewTable(layout.Column{Title: "ENTRY", Text: true, Cut: true}, layout.Column{Title: "N", Right: true})
		table.Add(cell, "1")
		table.Add("plain", "22")
		lines := strings.Split(strings.TrimSuffix(at(t, width, func(o layout.Output) error { return o.Table(table) }), "\n"), "\n")
		require.Len(t, lines, 3)
		for _, line := range lines {
			assert.Equal(t, layout.Width(lines[0]), layout.Width(line), "%q", lines)
			assert.LessOrEqual(t, layout.Width(line), width)
			assert.NotRegexp(t, "[\x00-\x1f\x7f\u0080-\u009f\u202a-\u202e\u2066-\u2069]", line)
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }

func TestText(t *testing.T) {
	assert.Equal(t, "delivery is\npaused\\u0007\n", at(t, 14, func(o layout.Output) error {
		return o.Text(layout.Plain, "delivery is paused\x07\n")
	}))
	var b bytes.Buffer
	require.NoError(t, layout.For(&b, layout.Always).Text(layout.Yellow, "one\ntwo"))
	assert.Equal(t, "\x1b[33mone\x1b[m\n\x1b[33mtwo\x1b[m\n", b.String())
}

func TestOutputKnowsTheTerminal(t *testing.T) {
	control, terminal, err := pty.Open()
	require.NoError(t, err)
	defer func() { assert.NoError(t, control.Close()) }()
	require.NoError(t, pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: 20}))
	o := layout.For(terminal, layout.Never)
	assert.Equal(t, 20, o.Width)
	require.NoError(t, o.Text(layout.Plain, "a sentence that is too long"))
	_, err = io.WriteString(layout.Sentences(terminal), "heartbeat: another one that is too long\x1b[2J\nsure? ")
	require.NoError(t, err)
	assert.Equal(t, terminal, words.Raw(layout.Sentences(terminal)))
	require.NoError(t, terminal.Close())
	shown, _ := io.ReadAll(control) // ends with EIO once the other end is closed
	assert.Equal(t, "a sentence that is\r\ntoo long\r\nheartbeat: another\r\none that is too\r\nlong\\u001b[2J\r\nsure? ", string(shown))
	assert.Zero(t, layout.For(&bytes.Buffer{}, layout.Auto).Width)
}

// FuzzWrap checks that wrapping loses no word, and that no line that could be broken is too long.
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
