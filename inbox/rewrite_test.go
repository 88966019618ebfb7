package inbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

func trim(t testing.TB, box *inbox.Inbox, before time.Time) outcomes.Trimming {
	t.Helper()
	n, err := outcomes.Trim(context.Background(), box, before)
	require.NoError(t, err)
	return n
}

// stamped returns a line of JSON with a time.
func stamped(t testing.TB, member string, at time.Time, rest string) string {
	t.Helper()
	stamp, err := json.Marshal(at)
	require.NoError(t, err)
	return `{"` + member + `":` + string(stamp) + rest + "}\n"
}

// A result that arrives during a trim of everything stays: nobody may have seen it. A result from a
// clock that ran ahead goes.
func TestTrimLeavesWhatComesMeanwhile(t *testing.T) {
	now := noon
	var box *inbox.Inbox
	line := func(at time.Time, id string) string { return stamped(t, "acknowledged_at", at, `,"entry_id":"`+id+`"`) }
	box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{Now: func() time.Time {
		if now = now.Add(time.Second); now.Equal(noon.Add(time.Second)) { // it has begun
			write(t, box.ResultsPath(), line(noon, "old")+line(noon.AddDate(9, 0, 0), "ahead")+line(now.Add(time.Millisecond), "comes"))
		}
		return now
	}})
	require.NoError(t, err)
	write(t, box.Path(), "")
	assert.Equal(t, 2, trim(t, box, noon.AddDate(1000, 0, 0)).Results)
	assert.Equal(t, line(noon.Add(time.Second+time.Millisecond), "comes"), read(t, box.ResultsPath()))
}

// Trim leaves younger lines, lines without a time, and every open dead letter.
func TestTrim(t *testing.T) {
	old, young := noon.Add(-2*time.Hour), noon
	box := newBox(t, "")
	results := stamped(t, "acknowledged_at", young, `,"entry_id":"young"`) + "no JSON\n{\"entry_id\":\"no time\"}\n"
	write(t, box.ResultsPath(), stamped(t, "acknowledged_at", old, `,"entry_id":"old"`)+results)
	events := stamped(t, "at", young, `,"event":"paused"`)
	write(t, box.EventsPath(), stamped(t, "at", old, `,"event":"paused"`)+events+stamped(t, "at", old, `,"event":"resumed"`))
	letter := func(raw string) string { return `{"entry_id":"` + raw + `","raw_line":"` + raw + `"}` + "\n" }
	write(t, box.DeadLetterPath(), letter("a")+letter("b")+letter("c"))
	all := letters(t, box)
	mark := func(i int, at time.Time) string {
		return stamped(t, "requeued_at", at, `,"letter":"`+all[i].Letter+`","entry_id":"`+all[i].EntryID+`"`)
	}
	stray := stamped(t, "requeued_at", old, `,"letter":"0123456789ab","entry_id":"x"`) // its letter is gone
	write(t, box.DeadLetterPath(), letter("a")+letter("b")+letter("c")+mark(0, old)+stray+mark(2, young))

	n := trim(t, box, noon.Add(-time.Hour))
	assert.Equal(t, outcomes.Trimming{Results: 1, DeadLetters: 1, Events: 2, Freed: n.Freed}, n)
	assert.Equal(t, results, read(t, box.ResultsPath()))
	assert.Equal(t, events, read(t, box.EventsPath()))
	assert.Equal(t, letter("b")+letter("c")+mark(2, young), read(t, box.DeadLetterPath()))

	n = trim(t, box, noon.Add(-time.Hour))
	assert.Equal(t, outcomes.Trimming{}, n, "a second time there is nothing")
}

// When an answer is trimmed, the letter that it closed goes too and does not become open again. A
// letter that was answered later, or before it was set aside, stays.
func TestTrimmedAnswerTakesItsLetter(t *testing.T) {
	box := newBox(t, "")
	at := func(hours time.Duration) string { return noon.Add(hours * time.Hour).Format(time.RFC3339) }
	letter := func(id string, hours time.Duration) string {
		return fmt.Sprintf(`{"entry_id":"e-%s","id":%[1]q,"reason":"failed","raw_line":"x","dead_lettered_at":%q}`+"\n", id, at(hours))
	}
	result := func(id string, hours time.Duration) string {
		return stamped(t, "acknowledged_at", noon.Add(hours*time.Hour), `,"entry_id":"r","id":"`+id+`"`)
	}
	write(t, box.DeadLetterPath(), letter("again", -4)+letter("late", -4)+letter("before", -3)+letter("never", -4))
	write(t, box.ResultsPath(), result("before", -4)+result("again", -3)+result("late", -1))
	open := func() int {
		n, err := outcomes.CountLetters(box)
		require.NoError(t, err)
		return n.All()
	}
	assert.Equal(t, 2, open())
	n := trim(t, box, noon.Add(-2*time.Hour))
	assert.Equal(t, outcomes.Trimming{Results: 2, DeadLetters: 1, Freed: n.Freed}, n)
	assert.Equal(t, letter("late", -4)+letter("before", -3)+letter("never", -4), read(t, box.DeadLetterPath()))
	assert.Equal(t, 2, open())
}

// Wherever a trim fails, no answered letter counts as open.
func TestTrimmedAnswerWhereItFails(t *testing.T) {
	letter := fmt.Sprintf(`{"entry_id":"e","id":"again","reason":"failed","raw_line":"x","dead_lettered_at":%q}`+"\n", noon.Add(-4*time.Hour).Format(time.RFC3339))
	for fails, done := 0, false; !done; fails++ {
		box := newBox(t, "")
		write(t, box.DeadLetterPath(), letter)
		write(t, box.ResultsPath(), stamped(t, "acknowledged_at", noon.Add(-3*time.Hour), `,"entry_id":"r","id":"again"`))
		ops := 0
		t.Run(fmt.Sprint(fails), func(t *testing.T) {
			crash.Observe(t, func(disk.Op) error {
				if ops++; ops-1 == fails {
					return unix.EIO
				}
				return nil
			})
			_, err := outcomes.Trim(t.Context(), box, noon)
			done = err == nil && ops <= fails
		})
		n, err := outcomes.CountLetters(box)
		require.NoError(t, err)
		assert.Zero(t, n.All(), "the operation %d failed", fails)
	}
}

// Trimmed lines do not come back, whatever a power loss takes, and later lines are in their right places.
func TestTrimmedForGood(t *testing.T) {
	reboot(t, "one")
	box := newBox(t, oldContent+"four\n")
	turn(t, box)
	turn(t, box)
	n := trim(t, box, noon.Add(time.Second))
	assert.Equal(t, 1, n.Results)
	for _, boot := range []string{"two", "three"} {
		reboot(t, boot)
		in(t, box, func(*inbox.Tx) {})
		assert.Empty(t, results(t, box))
	}
	turn(t, box)
	reboot(t, "four")
	turn(t, box)
	assert.Equal(t, []int64{4, 8}, starts(t, box.ResultsPath()))
}

// A name is forgotten with its result.
func TestTrimmedNameMayBeSentAgain(t *testing.T) {
	box := newBox(t, "")
	m := inbox.Message{ID: "job", Text: "do it"}
	_, err := box.Append(context.Background(), m, 0)
	require.NoError(t, err)
	drain(t, box)
	r, err := box.Append(context.Background(), m, 0)
	require.NoError(t, err)
	assert.Equal(t, inbox.FoundAnswered, r.Found)
	trim(t, box, noon.Add(time.Second))
	r, err = box.Append(context.Background(), m, 0)
	require.NoError(t, err)
	assert.True(t, r.Appended)
}

func TestTrimFrees(t *testing.T) {
	box := newBox(t, "")
	write(t, box.ResultsPath(), stamped(t, "acknowledged_at", noon, `,"reply":"`+strings.Repeat("x", 256<<10)+`"`))
	n := trim(t, box, noon.Add(time.Second))
	assert.Equal(t, 1, n.Results)
	assert.GreaterOrEqual(t, n.Freed, int64(256<<10))
}

// If the new file cannot be written, the old one stays.
func TestTrimOnAFullDisk(t *testing.T) {
	box := newBox(t, oldContent)
	drain(t, box)
	echo(t, box.ResultsPath(), "this line is kept\n")
	before := read(t, box.ResultsPath())
	crash.Observe(t, func(op disk.Op) error {
		if op.Kind == disk.OpWrite && strings.HasSuffix(op.Path, ".tmp") {
			return unix.ENOSPC
		}
		return nil
	})
	_, err := outcomes.Trim(context.Background(), box, noon.Add(time.Second))
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.ErrorContains(t, err, "rewrite "+box.ResultsPath()+": ")
	assert.Equal(t, before, read(t, box.ResultsPath()))
}

// The lock is free while much is copied. What happens meanwhile is kept: lines, requeued letters,
// another file in the old one's place.
func TestTrimGivesWay(t *testing.T) {
	big := stamped(t, "acknowledged_at", noon.Add(-time.Hour), `,"entry_id":"old","reply":"`+strings.Repeat("x", 3<<20)+`"`)
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, box *inbox.Inbox)
		want      string
		trimmed   int
	}{
		"answered": {func(t *testing.T, box *inbox.Inbox) {
			echo(t, box.Path(), "one\n")
			turn(t, box)
			drain(t, box)
		}, "", 1},
		"rotated": {func(t *testing.T, box *inbox.Inbox) {
			require.NoError(t, os.Remove(box.ResultsPath()))
			write(t, box.ResultsPath(), stamped(t, "acknowledged_at", noon, `,"entry_id":"new"`))
		}, "new", 0},
		"gone": {func(t *testing.T, box *inbox.Inbox) { require.NoError(t, os.Remove(box.ResultsPath())) }, "gone", 0},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "")
			young := stamped(t, "acknowledged_at", noon, `,"entry_id":"young","reply":"`+strings.Repeat("y", 3<<20)+`"`)
			write(t, box.ResultsPath(), young+big)
			did := false
			stop := crash.Observe(t, func(op disk.Op) error {
				if !did && op.Kind == disk.OpWrite && strings.HasPrefix(op.Path, box.ResultsPath()) && strings.HasSuffix(op.Path, ".tmp") {
					did = true
					c.meanwhile(t, box)
				}
				return nil
			})
			n := trim(t, box, noon)
			stop()
			require.True(t, did)
			assert.Equal(t, c.trimmed, n.Results)
			assert.NoFileExists(t, box.ResultsPath()+".trim.tmp")
			switch c.want {
			case "gone":
				assert.NoFileExists(t, box.ResultsPath())
			case "new":
				assert.Equal(t, stamped(t, "acknowledged_at", noon, `,"entry_id":"new"`), read(t, box.ResultsPath()))
			default:
				all := results(t, box)
				require.Len(t, all, 2)
				assert.Equal(t, "young", all[0].EntryID)
				assert.Equal(t, sha256Hex("one"), all[1].EntryID)
			}
		})
	}
}
