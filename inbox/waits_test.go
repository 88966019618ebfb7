package inbox_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
)

// lookAt returns a view that is closed with the test.
func lookAt(t testing.TB, box *inbox.Inbox) *inbox.View {
	t.Helper()
	v, err := box.View()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, v.Close()) })
	return v
}

// waitingTexts returns the texts of all waiting entries.
func waitingTexts(t testing.TB, box *inbox.Inbox) (texts []string) {
	t.Helper()
	require.NoError(t, lookAt(t, box).Waits(nil, func(w inbox.Waiting) bool {
		texts = append(texts, w.Text)
		return true
	}))
	return texts
}

func lastTexts(t testing.TB, box *inbox.Inbox, n int) (texts []string) {
	t.Helper()
	require.NoError(t, lookAt(t, box).Last(n, func(w inbox.Waiting) { texts = append(texts, w.Text) }))
	return texts
}

// TestViewLastIsTheEndOfWaits: both find the same.
func TestViewLastIsTheEndOfWaits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10) // more than a chunk
	for name, content := range map[string]string{
		"nothing":      "",
		"blank":        "\n \n\n",
		"lines":        "one\ntwo\nthree\n",
		"torn":         "one\ntwo\nthr",
		"torn blank":   "one\ntwo\n  ",
		"blanks amid":  "\n\none\n\n\n \ntwo\n\n\t\nthree\n\n\n",
		"line ends":    "one\r\ntwo\r\n\r\nthree\r\n",
		"one torn":     "one",
		"long lines":   long + "1\n" + long + "2\n\n" + long + "3",
		"many":         strings.Repeat("line\n", 40000),
		"blanks ahead": "one\n" + strings.Repeat("\n", 100000),
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, content)
			all := waitingTexts(t, box)
			for _, n := range []int{0, 1, 2, 3, 5, 1 << 20} {
				want, got := all[max(0, len(all)-n):], lastTexts(t, box, n)
				assert.True(t, slices.Equal(want, got), "%d: %.100q, want %.100q", n, got, want)
			}
		})
	}
}

func TestViewWaitsBehindWhatIsInFlight(t *testing.T) {
	box := newBox(t, "one\ntwo\nthree\nfour\n")
	turn(t, box)
	turn(t, box)
	assert.Equal(t, []string{"three", "four"}, waitingTexts(t, box))
	assert.Equal(t, []string{"three", "four"}, lastTexts(t, box, 3))
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	assert.Equal(t, []string{"two", "three", "four"}, waitingTexts(t, box))
	assert.Equal(t, []string{"two", "three", "four"}, lastTexts(t, box, 3))
	assert.Equal(t, []string{"three", "four"}, lastTexts(t, box, 2))
	var first inbox.Waiting
	require.NoError(t, lookAt(t, box).Waits(nil, func(w inbox.Waiting) bool { first = w; return false }))
	assert.Equal(t, 2, first.Attempt)
}

// TestViewWaitsBehindAHole: settled and compacted entries are zeros.
func TestViewWaitsBehindAHole(t *testing.T) {
	t.Parallel()
	box := newBox(t, strings.Repeat("settled "+strings.Repeat("-", 100)+"\n", 4000)+"one\ntwo\n")
	in(t, box, func(tx *inbox.Tx) {})
	write(t, beside(box, ".inbox-offset"), "436000")
	turn(t, box)
	_, err := box.Compact(t.Context())
	if err != nil {
		require.ErrorIs(t, err, inbox.ErrNoHoles)
		t.Skip("no holes here")
	}
	assert.Equal(t, []string{"two"}, waitingTexts(t, box))
	assert.Equal(t, []string{"two"}, lastTexts(t, box, 50))
	write(t, beside(box, ".inbox-offset"), "0")
	assert.Equal(t, []string{"one", "two"}, waitingTexts(t, box)[len(waitingTexts(t, box))-2:], "the cursor was set back into the hole")
	assert.Equal(t, waitingTexts(t, box), lastTexts(t, box, 1<<20))
}

func TestViewWaitsDecodesOnlyWhatIsWanted(t *testing.T) {
	t.Parallel()
	box := newBox(t, "one\n{\"id\":\"a\",\"prompt\":\"two\"}\nthree\n"+strings.Repeat("x", inbox.MaxLine+1)+"\n\"\"\n")
	var found []inbox.Waiting
	require.NoError(t, lookAt(t, box).Waits(
		func(l []byte) bool { return strings.Contains(string(l), "two") },
		func(w inbox.Waiting) bool { found = append(found, w); return true },
	))
	require.Len(t, found, 2)
	assert.Equal(t, "a", found[0].ID)
	assert.Equal(t, inbox.ReasonTooLong, found[1].Doomed, "no part of it tells its name")
	next, err := lookAt(t, box).Next(5)
	require.NoError(t, err)
	assert.Equal(t, next[3], found[1])
	assert.Equal(t, inbox.ReasonEmpty, next[4].Doomed)
}

// TestViewSinceHasEveryLineOnce follows the queue while it is worked through.
func TestViewSinceHasEveryLineOnce(t *testing.T) {
	t.Parallel()
	box := newBox(t, "before\n")
	p, err := lookAt(t, box).End()
	require.NoError(t, err)
	var seen []string
	look := func() []string {
		seen = nil
		p, err = lookAt(t, box).Since(p, func(w inbox.Waiting) { seen = append(seen, w.Text) })
		require.NoError(t, err)
		return seen
	}
	assert.Empty(t, look())
	echo(t, box.Path(), "one\n\n{\"prompt\":\"two\"}\nthr")
	assert.Equal(t, []string{"one", "two"}, look(), "the third is still being written")
	assert.Empty(t, look())
	echo(t, box.Path(), "ee\n")
	assert.Equal(t, []string{"three"}, look())

	echo(t, box.Path(), "four\n")
	assert.Equal(t, []string{"before", "one", "two", "three", "four"}, drain(t, box))
	assert.Equal(t, []string{"four"}, look(), "delivered and answered meanwhile")

	echo(t, box.Path(), "unterminated")
	in(t, box, func(tx *inbox.Tx) {
		still, err := box.AwaitStill(t.Context(), 0)
		require.NoError(t, err)
		e, err := tx.Next(still)
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{})
		require.NoError(t, err)
	})
	assert.Equal(t, []string{"unterminated"}, look(), "delivered without its newline")
	echo(t, box.Path(), "\nfive\n")
	assert.Equal(t, []string{"five"}, look())
	acknowledge(t, box, "done")

	write(t, box.Path(), "new one\nnew two\n")
	assert.Equal(t, []string{"new one", "new two"}, look(), "truncated and filled again")
	drain(t, box)
	assert.Empty(t, look())
	require.NoError(t, os.Remove(box.Path()))
	assert.Empty(t, look(), "the file may come back")
	write(t, box.Path(), "back\n")
	assert.Equal(t, []string{"back"}, look())
}

// TestViewSinceNoticesALongerFile: it is another file, although the earlier position would still fit.
func TestViewSinceNoticesALongerFile(t *testing.T) {
	box := newBox(t, "one\ntwo\n")
	drain(t, box)
	p, err := lookAt(t, box).End()
	require.NoError(t, err)
	write(t, box.Path(), "another\nand another\nand one more\n")
	var seen []string
	_, err = lookAt(t, box).Since(p, func(w inbox.Waiting) { seen = append(seen, w.Text) })
	require.NoError(t, err)
	assert.Equal(t, []string{"another", "and another", "and one more"}, seen)
}

func FuzzViewLast(f *testing.F) {
	f.Add("one\ntwo\r\n\n{\"prompt\":\"x\"}\nto", 2)
	f.Add("one", -5)
	f.Fuzz(func(t *testing.T, content string, n int) {
		box := newBox(t, content)
		all, n := waitingTexts(t, box), n%8
		want := all[len(all)-min(len(all), max(0, n)):]
		assert.True(t, slices.Equal(want, lastTexts(t, box, n)), "%q of %q", lastTexts(t, box, n), content)
	})
}

func TestTailTellsWhereALineIs(t *testing.T) {
	box := newBox(t, "")
	write(t, box.ResultsPath(), "one\ntwo\r\n\nthree\nfou")
	tail, err := outcomes.OpenTail(box.ResultsPath(), -1)
	require.NoError(t, err)
	defer func() { require.NoError(t, tail.Close()) }()
	var at []int64
	look := func() { require.NoError(t, tail.Lines(func([]byte) { at = append(at, tail.At()) })) }
	look()
	assert.Equal(t, []int64{0, 4, 9, 10}, at)
	torn, err := tail.Torn()
	require.NoError(t, err)
	assert.Equal(t, int64(16), torn)
	echo(t, box.ResultsPath(), "r\n")
	torn, err = tail.Torn()
	require.NoError(t, err)
	assert.Equal(t, int64(-1), torn)
	look()
	assert.Equal(t, []int64{0, 4, 9, 10, 16}, at)
}

func TestTailOfNoFileIsNotTorn(t *testing.T) {
	tail, err := outcomes.OpenTail(newBox(t, "").ResultsPath(), 5)
	require.NoError(t, err)
	torn, err := tail.Torn()
	require.NoError(t, err)
	assert.Equal(t, int64(-1), torn)
	require.NoError(t, tail.Close())
}

// TestViewAhead counts the entries before a line, and stays within its limit of bytes.
func TestViewAhead(t *testing.T) {
	box := newBox(t, "one\n\ntwo\nthree\nfour")
	ahead := func(start, most int64) int {
		n, err := lookAt(t, box).Ahead(t.Context(), start, most)
		require.NoError(t, err)
		return int(n)
	}
	assert.Equal(t, 0, ahead(0, 100))
	assert.Equal(t, 2, ahead(9, 100))
	assert.Equal(t, 2, ahead(9, 9))
	assert.Equal(t, -1, ahead(9, 8))
	assert.Equal(t, 4, ahead(100, 100), "to the end")
	deliver(t, box)
	assert.Equal(t, 1, ahead(9, 100), "the one in flight is not among them")
	assert.Equal(t, 0, ahead(0, 100), "nor what is settled")
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	assert.Equal(t, 2, ahead(9, 100), "what was given back is")
}
