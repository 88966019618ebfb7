package inbox_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
)

// reboot pretends another boot of the machine for the rest of the test.
func reboot(t testing.TB, id string) {
	t.Helper()
	machine.TestOnlyBootID = id
	t.Cleanup(func() { machine.TestOnlyBootID = "" })
}

// logs are the two append-only files, each with the step that adds a line.
var logs = map[string]struct {
	path   func(*inbox.Inbox) string
	settle func(*inbox.Tx) error
}{
	"results":      {(*inbox.Inbox).ResultsPath, func(tx *inbox.Tx) error { return tx.Acknowledge("done") }},
	"dead letters": {(*inbox.Inbox).DeadLetterPath, func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) }},
}

// settleNext delivers the next entry and settles it.
func settleNext(t testing.TB, box *inbox.Inbox, settle func(*inbox.Tx) error) {
	t.Helper()
	deliver(t, box)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, settle(tx)) })
}

// starts returns the offsets of the entries in a log, one a line.
func starts(t testing.TB, path string) (all []int64) {
	t.Helper()
	for _, l := range linesOf[map[string]any](t, path) {
		all = append(all, int64(l["start_offset"].(float64)))
	}
	return all
}

// An operator may empty a log at any time. Later lines go into the new file, and no boot brings the
// old ones back.
func TestLogsMayBeRotated(t *testing.T) {
	remove := func(t testing.TB, path string) { require.NoError(t, os.Remove(path)) }
	for name, c := range map[string]struct {
		rotate func(t testing.TB, path string)
		want   []int64
	}{
		"moved away":           {func(t testing.TB, path string) { require.NoError(t, os.Rename(path, path+".1")) }, nil},
		"removed":              {remove, nil},
		"truncated":            {func(t testing.TB, path string) { require.NoError(t, os.Truncate(path, 0)) }, nil},
		"last line taken away": {func(t testing.TB, path string) { write(t, path, firstLine(t, path)) }, []int64{0}},
		"nothing":              {func(testing.TB, string) {}, []int64{0, 1}},
		"last newline missing": {func(t testing.TB, path string) { write(t, path, strings.TrimSuffix(read(t, path), "\n")) }, []int64{0, 1}},
	} {
		for log, l := range logs {
			for when, reboots := range map[string]bool{"": false, ", then a new boot": true} {
				t.Run(name+" "+log+when, func(t *testing.T) {
					reboot(t, "one")
					box := newBox(t, "a\nb\nc\nd\n")
					settleNext(t, box, l.settle)
					settleNext(t, box, l.settle)
					c.rotate(t, l.path(box))
					settleNext(t, box, l.settle)
					if reboots {
						reboot(t, "two")
						in(t, box, func(*inbox.Tx) {})
						reboot(t, "three")
					}
					settleNext(t, box, l.settle)
					var want []int64
					for _, i := range append(c.want, 2, 3) {
						want = append(want, 2*i)
					}
					assert.Equal(t, want, starts(t, l.path(box)))
				})
			}
		}
	}
}

func firstLine(t testing.TB, path string) string {
	t.Helper()
	first, _, _ := strings.Cut(read(t, path), "\n")
	return first + "\n"
}

// An operator's own lines in a log are not overwritten.
func TestLogsMayBeWrittenTo(t *testing.T) {
	for name, l := range logs {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "a\nb\nc\n")
			settleNext(t, box, l.settle)
			echo(t, l.path(box), "{\"start_offset\":-1}")
			settleNext(t, box, l.settle)
			echo(t, l.path(box), "{\"start_offset\":-2}\n")
			settleNext(t, box, l.settle)
			assert.Equal(t, []int64{0, -1, 2, -2, 4}, starts(t, l.path(box)))
		})
	}
}

// An operator who has dealt with the dead letters removes them. They stay away, whatever the queue
// did last before a boot.
func TestDrainedDeadLettersStayAway(t *testing.T) {
	reboot(t, "one")
	box := newBox(t, "a\n")
	settleNext(t, box, logs["dead letters"].settle)
	require.NoError(t, os.Remove(box.DeadLetterPath()))
	reboot(t, "two")
	in(t, box, func(*inbox.Tx) {})
	assert.Empty(t, deadLetters(t, box))
}

// An operator may also remove a log's oldest lines. The rest stays whole, whatever the journal
// would repair after a new boot.
func TestLogsMayBeShortened(t *testing.T) {
	for name, l := range logs {
		t.Run(name, func(t *testing.T) {
			reboot(t, "one")
			two := strings.Repeat("2", 80)
			box := newBox(t, `{"prompt":"x","id":"1"}`+"\n"+`{"prompt":"x","id":"`+two+`"}`+"\n"+`{"prompt":"x","id":"3"}`+"\n"+`{"prompt":"x","id":"4"}`+"\n")
			settleNext(t, box, l.settle)
			reboot(t, "two") // the journal no longer has the earlier settlement
			settleNext(t, box, l.settle)
			settleNext(t, box, l.settle)
			content := read(t, l.path(box))
			write(t, l.path(box), strings.TrimPrefix(content, firstLine(t, l.path(box))))
			reboot(t, "three")
			in(t, box, func(*inbox.Tx) {})
			settleNext(t, box, l.settle)
			assert.Equal(t, []string{two, "3", "4"}, ids(t, l.path(box)))
		})
	}
}

// ids returns the ids of the entries in a log, one a line.
func ids(t testing.TB, path string) (all []string) {
	t.Helper()
	for _, l := range linesOf[map[string]any](t, path) {
		all = append(all, l["id"].(string))
	}
	return all
}

// Lines that were removed before a kill stay away: in the same boot all writes are there, so only
// the last commit is repaired.
func TestRotatedStaysAwayAfterAKill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		last func(t testing.TB, box *inbox.Inbox) // the commit that the kill interrupted
		want int                                  // how many lines it adds to the log
	}{
		"delivered": {func(t testing.TB, box *inbox.Inbox) { deliver(t, box) }, 0},
		"paused":    {func(t testing.TB, box *inbox.Inbox) { in(t, box, func(tx *inbox.Tx) { pauseIn(t, tx) }) }, 0},
		"answered":  {func(t testing.TB, box *inbox.Inbox) { turn(t, box); turn(t, box) }, 1},
	} {
		for _, log := range []string{"results", "events"} {
			t.Run(name+"/"+log, func(t *testing.T) {
				box := newBox(t, "")
				for range 4 {
					send(t, box, inbox.Message{Text: "x"})
				}
				path := box.Path()
				switch log {
				case "results":
					settleNext(t, box, logs["results"].settle)
					settleNext(t, box, logs["results"].settle)
					path = box.ResultsPath()
					require.NoError(t, os.Rename(path, path+".1"))
				case "events":
					in(t, box, func(tx *inbox.Tx) { pauseIn(t, tx) })
					path = box.EventsPath()
					require.NoError(t, os.Rename(path, path+".1"))
				}
				c.last(t, box)
				forget(t, box)
				in(t, box, func(*inbox.Tx) {})
				switch log {
				case "results":
					assert.Len(t, results(t, box), c.want)
				case "events":
					assert.LessOrEqual(t, len(linesOf[inbox.Event](t, path)), 1)
				}
			})
		}
	}
}

func pauseIn(t testing.TB, tx *inbox.Tx) {
	t.Helper()
	_, err := tx.Holds().Pause("x", nil)
	require.NoError(t, err)
}
