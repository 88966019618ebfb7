package inbox_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/long"
)

const journal = ".inbox-journal"

// written returns a journal without its trailing zeros.
func written(content string) string { return strings.TrimRight(content, "\x00") }

// filled returns a journal of that content, with zeros up to the length of like.
func filled(content string, like string) string {
	return content + strings.Repeat("\x00", max(0, len(like)-len(content)))
}

// view is what anybody can see of a queue's state.
type view struct {
	Cursor   int64
	InFlight string
	Next     string
}

func look(t testing.TB, box *inbox.Inbox) (v view, err error) {
	t.Helper()
	tx, err := box.Begin(context.Background())
	if err != nil {
		return v, err
	}
	defer func() { require.NoError(t, tx.Close()) }()
	v.Cursor = tx.Cursor()
	if d := tx.InFlight(); d != nil {
		v.InFlight = d.Text()
		return v, nil
	}
	e, err := tx.Next(inbox.Mark{})
	if err != nil {
		require.ErrorIs(t, err, inbox.ErrEmpty)
	}
	v.Next = e.Text
	return v, nil
}

func TestJournalStaysSmall(t *testing.T) {
	t.Parallel()
	turns := long.Rounds(600, 2_000)
	var content strings.Builder
	for i := range turns {
		fmt.Fprintf(&content, "{\"id\":\"%d\",\"prompt\":\"entry %d %s\"}\n", i, i, strings.Repeat("x", 200))
	}
	box := newBox(t, content.String())
	trimmed, first := 0, ""
	for i := range turns {
		require.True(t, strings.HasPrefix(turn(t, box), fmt.Sprintf("entry %d ", i)))
		now := read(t, beside(box, journal))
		require.LessOrEqual(t, len(now), 256<<10, "turn %d", i)
		if line, _, _ := strings.Cut(now, "\n"); line != first {
			first, trimmed = line, trimmed+1
		}
	}
	assert.Empty(t, turn(t, box))
	assert.Greater(t, trimmed, 2, "it was trimmed")
	all := results(t, box)
	require.Len(t, all, turns)
	for i, r := range all {
		assert.Equal(t, fmt.Sprint(i), r.ID)
	}
	dir, err := os.ReadDir(beside(box, "."))
	require.NoError(t, err)
	assert.Len(t, dir, 5, "the inbox, its cursor, results, journal and lock")
}

// tornCommits are steps whose record is then cut off.
var tornCommits = map[string]func(*inbox.Tx) error{
	"deliver": func(tx *inbox.Tx) error {
		if err := tx.Drop(); err != nil {
			return err
		}
		e, err := tx.Next(inbox.Mark{})
		if err != nil {
			return err
		}
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s", Evidence: evidence})
		return err
	},
	"acknowledge": func(tx *inbox.Tx) error { return tx.Acknowledge("a reply, é\n") },
	"dead-letter": func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) },
	"give back":   func(tx *inbox.Tx) error { return tx.GiveBack("", true) },
}

// An incomplete record was never acted on: the state is the one before it, at whichever byte the
// writing stopped.
func TestTornRecordIsNotThere(t *testing.T) {
	t.Parallel()
	for name, step := range tornCommits {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			turn(t, box)
			turn(t, box)
			before := snapshot(t, box)
			want, err := look(t, box)
			require.NoError(t, err)
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, step(tx)) })
			after := snapshot(t, box)

			old, all := written(before[journal]), written(after[journal])
			require.True(t, strings.HasPrefix(all, old))
			record := strings.Index(all[len(old):], "\n") + 1
			for _, fill := range []bool{true, false} {
				stride := long.Rounds(41, 13)
				if fill && long.Wanted() { // journals are filled, except one that had grown
					stride = 1
				}
				for cut := 0; cut < record; cut += stride {
					cutOff := all[:len(old)+cut]
					if fill {
						cutOff = filled(cutOff, after[journal])
					}
					restore(t, box, before)
					write(t, beside(box, journal), cutOff)
					got, err := look(t, box)
					require.NoError(t, err, "%d of %d bytes", cut, record)
					require.Equal(t, want, got, "%d of %d bytes", cut, record)
				}
			}
			// Entries after a torn record are not harmed by what is left of it.
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Acknowledge("done")) })
			assert.Equal(t, []string{"three"}, drain(t, box))
		})
	}
}

// Before the first record nothing was there.
func TestTornFirstRecord(t *testing.T) {
	t.Parallel()
	box := newBox(t, oldContent)
	before := snapshot(t, box)
	turn(t, box)
	all := written(snapshot(t, box)[journal])
	for cut := 0; cut <= strings.Index(all, "\n"); cut += long.Rounds(7, 1) {
		restore(t, box, before)
		write(t, beside(box, journal), filled(all[:cut], strings.Repeat("\x00", 256<<10)))
		got, err := look(t, box)
		require.NoError(t, err, "%d bytes", cut)
		require.Equal(t, view{Next: "one"}, got)
	}
	assert.Equal(t, []string{"one", "two", "three"}, drain(t, box))
}

// Bytes after the last record were never synced.
func TestGarbageBehindTheJournal(t *testing.T) {
	t.Parallel()
	for name, garbage := range map[string]string{
		"zeros":            strings.Repeat("\x00", 1<<20),
		"text":             "what is this",
		"lines":            strings.Repeat("what is this\n", 1_000),
		"newlines":         strings.Repeat("\n", 10_000),
		"binary":           strings.Repeat("\xff\x00\n\x01", 20_000),
		"a sum alone":      "0123456789abcdef \n",
		"zeros, then text": strings.Repeat("\x00", 40<<10) + "text\n",
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			turn(t, box)
			turn(t, box)
			j := read(t, beside(box, journal))
			write(t, beside(box, journal), written(j)+garbage)
			got, err := look(t, box)
			require.NoError(t, err)
			assert.Equal(t, view{Cursor: 4, InFlight: "two"}, got)
			acknowledge(t, box, "done")
			assert.Equal(t, []string{"three"}, drain(t, box))
			assert.Len(t, results(t, box), 3)
		})
	}
}

// A journal without a valid record does not count as missing: nothing changes, and the error says what to do.
func TestCorruptJournalIsRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(j string) string{
		"text":                 func(string) string { return "what\nis\nthis\n" },
		"overwritten":          func(j string) string { return strings.Repeat("x\n", len(j)/2) },
		"a digit of a record":  func(j string) string { return strings.ReplaceAll(j, `"v":1`, `"v":2`) },
		"all sums":             func(j string) string { return strings.ReplaceAll(j, ` {"`, `  {"`) },
		"last record":          func(j string) string { return spoilRecord(j, -2) },
		"last record, no mark": func(j string) string { return strings.ReplaceAll(j, `"seq"`, `"sEq"`) },
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			turn(t, box)
			turn(t, box)
			write(t, beside(box, journal), spoil(read(t, beside(box, journal))))
			before := snapshot(t, box)
			_, err := box.Begin(context.Background())
			require.ErrorIs(t, err, inbox.ErrCorrupt)
			assert.ErrorContains(t, err, "move it away")
			assert.Equal(t, before, snapshot(t, box))

			require.NoError(t, os.Rename(beside(box, journal), beside(box, "away")))
			got, err := look(t, box)
			require.NoError(t, err)
			assert.Equal(t, view{Cursor: 4, InFlight: "two"}, got, "as the other files say")
		})
	}
}

// spoilRecord changes a byte in the i-th line of a journal; a negative i counts from the end.
func spoilRecord(j string, i int) string {
	lines := strings.SplitAfter(written(j), "\n")
	lines = lines[:len(lines)-1]
	if i < 0 {
		i += len(lines)
	}
	b := []byte(lines[i])
	b[len(b)/2] ^= 1
	lines[i] = string(b)
	return filled(strings.Join(lines, ""), j)
}

// An old corrupt record does not matter: the last one holds everything.
func TestCorruptMiddleOfTheJournal(t *testing.T) {
	for _, boot := range []string{"one", "two"} {
		t.Run("read in boot "+boot, func(t *testing.T) {
			reboot(t, "one")
			box := newBox(t, oldContent)
			turn(t, box)
			turn(t, box)
			write(t, beside(box, journal), spoilRecord(read(t, beside(box, journal)), 0))
			reboot(t, boot)
			got, err := look(t, box)
			require.NoError(t, err)
			assert.Equal(t, view{Cursor: 4, InFlight: "two"}, got)
		})
	}
}
