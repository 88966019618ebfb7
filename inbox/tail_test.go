package inbox_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
)

// tail reads the lines of an inbox's results.
func tail(t testing.TB, box *inbox.Inbox, n int) *outcomes.Tail {
	t.Helper()
	tail, err := outcomes.OpenTail(box.ResultsPath(), n)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tail.Close()) })
	return tail
}

func lines(t testing.TB, tail *outcomes.Tail) (all []string) {
	t.Helper()
	require.NoError(t, tail.Lines(func(l []byte) { all = append(all, string(l)) }))
	return all
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	require.NoError(t, os.Rename(from, to))
}

func TestTailFromTheLastLines(t *testing.T) {
	for content, want := range map[string][]string{
		"":                                     nil,
		"a\n":                                  {"a"},
		"a\nb\nc\n":                            {"a", "b", "c"},
		"a\r\nb\r\n":                           {"a", "b"},
		"a\n\nb\n":                             {"a", "", "b"},
		"a\nb\ntorn":                           {"a", "b"},
		"torn":                                 nil,
		strings.Repeat("x", 200<<10) + "\ny\n": {strings.Repeat("x", 200<<10), "y"},
	} {
		for n := -1; n <= len(want)+1; n++ {
			t.Run(fmt.Sprintf("%.20q last %d", content, n), func(t *testing.T) {
				box := newBox(t, "")
				write(t, box.ResultsPath(), content)
				from := tail(t, box, n)
				last := want
				if n >= 0 {
					last = want[max(0, len(want)-n):]
				}
				assert.Equal(t, append([]string(nil), last...), lines(t, from))
				assert.Empty(t, lines(t, from))
				echo(t, box.ResultsPath(), "\nnew\n") // ends a torn line
				var came []string
				switch {
				case strings.HasSuffix(content, "torn"):
					came = []string{"torn", "new"}
				default:
					came = []string{"", "new"}
				}
				assert.Equal(t, came, lines(t, from))
			})
		}
	}
}

// Whatever happens to a file during reading, no new line is missed, and no line that is still there
// comes twice.
func TestTailOfAFileThatChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t testing.TB, path string)
		want   []string
	}{
		"appended to":    {func(t testing.TB, path string) { echo(t, path, "d\n") }, []string{"d"}},
		"torn":           {func(t testing.TB, path string) { echo(t, path, "d\ne") }, []string{"d"}},
		"CRLF":           {func(t testing.TB, path string) { echo(t, path, "d\r\n\r\n") }, []string{"d", ""}},
		"touched":        {func(t testing.TB, path string) { setTimes(t, path, 0, 0) }, nil},
		"renamed":        {func(t testing.TB, path string) { rename(t, path, path+".1") }, nil},
		"renamed, later": {func(t testing.TB, path string) { rename(t, path, path+".1"); echo(t, path, "d\n") }, []string{"d"}},
		"written to, then renamed": {
			func(t testing.TB, path string) {
				echo(t, path, "d\n")
				rename(t, path, path+".1")
				echo(t, path, "e\n")
			}, []string{"d", "e"},
		},
		"renamed, then written to": {
			func(t testing.TB, path string) {
				rename(t, path, path+".1")
				echo(t, path+".1", "d\n")
				echo(t, path, "e\n")
			}, []string{"d", "e"},
		},
		"renamed, the same line again": {
			func(t testing.TB, path string) { rename(t, path, path+".1"); echo(t, path, "x\nc\nd\n") }, []string{"d"},
		},
		"removed":                 {func(t testing.TB, path string) { require.NoError(t, os.Remove(path)) }, nil},
		"truncated":               {func(t testing.TB, path string) { write(t, path, "") }, nil},
		"truncated, later":        {func(t testing.TB, path string) { write(t, path, "d\n") }, []string{"d"}},
		"truncated, as long":      {func(t testing.TB, path string) { write(t, path, "x\ny\nz\n") }, []string{"x", "y", "z"}},
		"truncated, longer":       {func(t testing.TB, path string) { write(t, path, "x\ny\nz\nzz\n") }, []string{"x", "y", "z", "zz"}},
		"truncated, amid a line":  {func(t testing.TB, path string) { write(t, path, "longer line\nd\n") }, []string{"longer line", "d"}},
		"first line taken out":    {func(t testing.TB, path string) { write(t, path, "b\nc\n") }, nil},
		"one out, one more":       {func(t testing.TB, path string) { write(t, path, "b\nc\nd\n") }, []string{"d"}},
		"one out, a long one":     {func(t testing.TB, path string) { write(t, path, "b\nc\n"+strings.Repeat("d", 99)+"\n") }, []string{strings.Repeat("d", 99)}},
		"lines before it":         {func(t testing.TB, path string) { write(t, path, "z\na\nb\nc\nd\n") }, []string{"d"}},
		"the last line taken out": {func(t testing.TB, path string) { write(t, path, "a\nb\n") }, []string{"a", "b"}},
		"the end became CRLF":     {func(t testing.TB, path string) { write(t, path, "a\nb\nc\r\nd\r\n") }, []string{"d"}},
		"replaced":                {func(t testing.TB, path string) { replace(t, path, "d\n") }, []string{"d"}},
		"trimmed":                 {func(t testing.TB, path string) { replace(t, path, "c\nd\n") }, []string{"d"}},
		"replaced by the same":    {func(t testing.TB, path string) { replace(t, path, "a\nb\nc\n") }, nil},
	} {
		for n := range 4 {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				box := newBox(t, "")
				path := box.ResultsPath()
				write(t, path, "a\nb\nc\n")
				from := tail(t, box, n)
				require.Len(t, lines(t, from), n)
				c.change(t, path)
				assert.Equal(t, c.want, lines(t, from))
				if name != "torn" {
					assert.Empty(t, lines(t, from))
					echo(t, path, "last\n")
					assert.Equal(t, []string{"last"}, lines(t, from))
				} else {
					echo(t, path, " is whole\n")
					assert.Equal(t, []string{"e is whole"}, lines(t, from))
				}
			})
		}
	}
}

func TestTailOfAMissingFile(t *testing.T) {
	for _, n := range []int{-1, 0, 1, 5} {
		box := newBox(t, oldContent)
		from := tail(t, box, n)
		assert.Empty(t, lines(t, from))
		turn(t, box)
		acknowledge(t, box, "done")
		require.Len(t, lines(t, from), 1, "all of it came since")
		rename(t, box.ResultsPath(), box.ResultsPath()+".1")
		assert.Empty(t, lines(t, from))
		turn(t, box)
		acknowledge(t, box, "done")
		assert.Len(t, lines(t, from), 1)
	}
}

// A line comes when it is whole, however it was written.
func TestTailOfALineInPieces(t *testing.T) {
	box := newBox(t, "")
	from := tail(t, box, -1)
	for _, c := range "{\"reply\":\"é\"}\r" {
		echo(t, box.ResultsPath(), string(c))
		require.Empty(t, lines(t, from))
	}
	echo(t, box.ResultsPath(), "\n")
	assert.Equal(t, []string{"{\"reply\":\"é\"}"}, lines(t, from))
}

// The other files are read in the same way.
func TestTails(t *testing.T) {
	box := newBox(t, oldContent)
	deadLetters, err := outcomes.OpenTail(box.DeadLetterPath(), 0)
	require.NoError(t, err)
	defer deadLetters.Close()
	events, err := outcomes.OpenTail(box.EventsPath(), 0)
	require.NoError(t, err)
	defer events.Close()
	deliver(t, box)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned)) })
	deliver(t, box)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Drop()) })
	require.Len(t, lines(t, deadLetters), 1)
	require.Len(t, lines(t, events), 1)
	assert.Empty(t, lines(t, tail(t, box, -1)))
}

func TestTailRefusesALink(t *testing.T) {
	box := newBox(t, "")
	require.NoError(t, os.Symlink(box.Path(), box.ResultsPath()))
	_, err := outcomes.OpenTail(box.ResultsPath(), -1)
	assert.ErrorContains(t, err, "symbolic link")
}
