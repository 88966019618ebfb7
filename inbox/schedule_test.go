package inbox_test

import (
	"context"
	"errors"
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
	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

// staged returns a line of .scheduled.jsonl.
func staged(id string, at time.Time) string {
	return fmt.Sprintf(`{"id":%q,"prompt":"text of %s","not_before":%q}`, id, id, at.Format(time.RFC3339Nano))
}

func scheduledIDs(t testing.TB, box *inbox.Inbox) (ids []string) {
	t.Helper()
	all, err := box.Scheduled()
	require.NoError(t, err)
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	return ids
}

// waitingIDs returns the names of the waiting entries, in order.
func waitingIDs(t testing.TB, box *inbox.Inbox) (ids []string) {
	t.Helper()
	v, err := box.View()
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	all, err := v.Next(1000)
	require.NoError(t, err)
	for _, w := range all {
		ids = append(ids, w.ID)
	}
	return ids
}

// nextDue begins a transaction, which promotes, and returns when the next entry is due.
func nextDue(t testing.TB, box *inbox.Inbox) time.Time {
	t.Helper()
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	return tx.NextDue()
}

func TestScheduledEntryWaitsForItsTime(t *testing.T) {
	now := clockOf(t, newBox(t, "one\n"))
	box, at := now.box, noon.Add(time.Hour)
	r := now.send(t, inbox.Message{ID: "job", Text: "x", Metadata: map[string]any{"m": 1}, NotBefore: at})
	assert.True(t, r.Appended)
	assert.Equal(t, []int64{0, 0}, []int64{r.Start, r.End})
	assert.Equal(t, at, *r.NotBefore)
	assert.Equal(t, "one\n", read(t, box.Path()))
	assert.Equal(t, []inbox.Event{{At: noon, Event: inbox.EventScheduled, EntryID: r.EntryID, ID: "job", Until: &at}}, events(t, box))
	all, err := box.Scheduled()
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, []any{"job", r.EntryID, at, "x"}, []any{all[0].ID, all[0].EntryID, all[0].NotBefore, all[0].Text})

	assert.True(t, at.Equal(nextDue(t, box)))
	now.set(at.Add(-1))
	assert.True(t, at.Equal(nextDue(t, box)))
	assert.Equal(t, []string{"one"}, drain(t, box))
	now.set(at)
	assert.True(t, nextDue(t, box).IsZero())
	assert.Empty(t, scheduledIDs(t, box))
	e := deliver(t, box)
	assert.Equal(t, []any{"job", r.EntryID, "x", at}, []any{e.ID, e.EntryID, e.Text, all[0].NotBefore})
	assert.JSONEq(t, "1", string(e.Metadata["m"]))
	acknowledge(t, box, "done")
	now.set(noon)
	assert.Empty(t, drain(t, box))
	assert.Equal(t, inbox.FoundAnswered, now.send(t, inbox.Message{ID: "job", Text: "x", NotBefore: at}).Found)
}

// A time in the past is no reason to wait.
func TestNotBeforeInThePast(t *testing.T) {
	box := newBox(t, "")
	for _, at := range []time.Time{noon, noon.Add(-1), time.Unix(0, 0), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)} {
		r := send(t, box, inbox.Message{Text: "x", NotBefore: at})
		assert.Nil(t, r.NotBefore)
		assert.NotZero(t, r.End)
	}
	assert.NoFileExists(t, box.ScheduledPath())
	assert.Len(t, drain(t, box), 4)
}

// Due entries go to the end of the inbox in the order of the file, whichever time came first.
func TestPromotionOrder(t *testing.T) {
	now := clockOf(t, newBox(t, "one\n"))
	for id, hours := range [...]int{3, 1, 2, 9, 1, 4} {
		now.send(t, inbox.Message{ID: fmt.Sprint(id), Text: "x", NotBefore: noon.Add(time.Duration(hours) * time.Hour)})
	}
	assert.True(t, noon.Add(time.Hour).Equal(nextDue(t, now.box)))
	now.set(noon.Add(3 * time.Hour))
	assert.True(t, noon.Add(4*time.Hour).Equal(nextDue(t, now.box)))
	assert.Equal(t, []string{"", "0", "1", "2", "4"}, waitingIDs(t, now.box))
	assert.Equal(t, []string{"3", "5"}, scheduledIDs(t, now.box))
	now.set(noon.Add(9 * time.Hour))
	in(t, now.box, func(*inbox.Tx) {})
	assert.Equal(t, []string{"", "0", "1", "2", "4", "3", "5"}, waitingIDs(t, now.box))
	assert.Empty(t, read(t, now.box.ScheduledPath()))
}

// Whatever the clock does, entries that came due stay in the inbox, and the others wait.
func TestScheduleWhenTheClockIsSet(t *testing.T) {
	now := clockOf(t, newBox(t, ""))
	now.send(t, inbox.Message{ID: "a", Text: "x", NotBefore: noon.Add(time.Hour)})
	now.send(t, inbox.Message{ID: "b", Text: "x", NotBefore: noon.Add(2 * time.Hour)})
	for _, c := range []struct {
		hours   int
		waiting []string
	}{{0, nil}, {-1000, nil}, {1, []string{"a"}}, {-1000, []string{"a"}}, {0, []string{"a"}}, {1, []string{"a"}}, {2, []string{"a", "b"}}, {0, []string{"a", "b"}}} {
		now.set(noon.Add(time.Duration(c.hours) * time.Hour))
		in(t, now.box, func(*inbox.Tx) {})
		in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.Holds().Resume()) })
		assert.Equal(t, c.waiting, waitingIDs(t, now.box), c.hours)
	}
}

// A time far in the future is not taken for a past one.
func TestScheduledFarOff(t *testing.T) {
	for _, at := range []time.Time{
		time.Date(2262, 4, 11, 23, 47, 17, 0, time.UTC), time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2847, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
	} {
		box := newBox(t, "")
		send(t, box, inbox.Message{ID: "far", Text: "x", NotBefore: at})
		for range 2 {
			due := nextDue(t, box)
			assert.True(t, due.After(noon) && !due.After(at), "%s", due)
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("s").Start(0, nil)) })
		}
		assert.Equal(t, []string{"far"}, scheduledIDs(t, box))
		assert.Empty(t, waitingIDs(t, box))
	}
}

// People may edit the schedule while no transaction is open.
func TestScheduledByHand(t *testing.T) {
	t.Parallel()
	past, later := noon.Add(-time.Hour), noon.Add(time.Hour)
	a, b, c := staged("a", past), staged("b", past), staged("c", later)
	for name, s := range map[string]struct {
		content       string
		waiting, left []string
		kept          string
		warnings      int
	}{
		"nothing":             {},
		"as we write it":      {content: a + "\n" + c + "\n" + b + "\n", waiting: []string{"a", "b"}, left: []string{"c"}, kept: c + "\n"},
		"reordered":           {content: b + "\n" + a + "\n", waiting: []string{"b", "a"}},
		"blank lines":         {content: "\n" + a + "\n \r\n" + b + "\n", waiting: []string{"a", "b"}, kept: "\n \r\n"},
		"CRLF":                {content: a + "\r\n" + c + "\r\n", waiting: []string{"a"}, left: []string{"c"}, kept: c + "\r\n"},
		"two CRs":             {content: a + "\r\r\n" + c + "\n", waiting: []string{"a"}, left: []string{"c"}, kept: c + "\n"},
		"indented":            {content: "  " + a + " \n\t" + b + "\n", waiting: []string{"a", "b"}},
		"spread out":          {content: strings.ReplaceAll(a, ",", " , \t") + "\n", waiting: []string{"a"}},
		"no last newline":     {content: c + "\n" + a, waiting: []string{"a"}, left: []string{"c"}, kept: c + "\n"},
		"torn":                {content: a + "\n" + b[:len(b)-3], waiting: []string{"a"}, kept: b[:len(b)-3]},
		"torn alone":          {content: b[:20], kept: b[:20]},
		"the same line twice": {content: a + "\n" + a + "\n", waiting: []string{"a"}},
		"a name twice":        {content: a + "\n" + staged("a", past.Add(-1)) + "\n", waiting: []string{"a", "a"}},
		"garbage":             {content: "what is this\n" + a + "\n{}\n", waiting: []string{"a"}, kept: "what is this\n{}\n", warnings: 1},
		"no time":             {content: "{\"id\":\"a\",\"prompt\":\"x\"}\n", kept: "{\"id\":\"a\",\"prompt\":\"x\"}\n", warnings: 1},
		"no valid time":       {content: "{\"id\":\"a\",\"prompt\":\"x\",\"not_before\":\"soon\"}\n", kept: "{\"id\":\"a\",\"prompt\":\"x\",\"not_before\":\"soon\"}\n", warnings: 1},
		"another zone":        {content: "{\"id\":\"a\",\"prompt\":\"x\",\"not_before\":\"2026-03-04T13:30:00+02:00\"}\n", waiting: []string{"a"}},
		"ages ago":            {content: "{\"id\":\"a\",\"prompt\":\"x\",\"not_before\":\"0001-01-02T00:00:00Z\"}\n", waiting: []string{"a"}},
		"no UTF-8":            {content: "{\"id\":\"a\",\"prompt\":\"caf\xe9\",\"not_before\":\"2020-01-01T00:00:00Z\"}\n", waiting: []string{"a"}},
	} {
		for how, killed := range map[string]bool{"": false, ", killed after the commit": true} {
			t.Run(name+how, func(t *testing.T) {
				box := newBox(t, "")
				write(t, box.ScheduledPath(), s.content)
				tx, err := box.Begin(context.Background())
				require.NoError(t, err)
				assert.Len(t, tx.Warnings(), s.warnings)
				require.NoError(t, tx.Close())
				if killed && len(s.waiting) > 0 {
					forget(t, box)
				}
				for range 3 {
					in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("s").Start(0, nil)) })
					assert.Equal(t, s.waiting, waitingIDs(t, box))
				}
				assert.Equal(t, s.left, scheduledIDs(t, box))
				assert.Equal(t, s.kept, read(t, box.ScheduledPath()))
				drain(t, box)
				assert.Len(t, results(t, box), len(s.waiting))
			})
		}
	}
}

// The schedule is remembered, but an edit is noticed whatever its length.
func TestScheduledEditIsNoticed(t *testing.T) {
	far := staged("a", noon.Add(90*time.Hour))
	for name, content := range map[string]string{
		"another time":  staged("a", noon.Add(-90*time.Hour)),
		"another entry": staged("b", noon.Add(-90*time.Hour)),
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "")
			require.Len(t, content, len(far))
			write(t, box.ScheduledPath(), far+"\n")
			setTimes(t, box.ScheduledPath(), 0, -time.Hour)
			for range 2 {
				in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("s").Start(0, nil)) })
			}
			require.Empty(t, waitingIDs(t, box))
			write(t, box.ScheduledPath(), content+"\n")
			in(t, box, func(*inbox.Tx) {})
			assert.Len(t, waitingIDs(t, box), 1)
			assert.Empty(t, scheduledIDs(t, box))
		})
	}
	t.Run("deleted line", func(t *testing.T) {
		box := newBox(t, "")
		send(t, box, inbox.Message{ID: "a", Text: "x", NotBefore: noon.Add(time.Hour)})
		send(t, box, inbox.Message{ID: "b", Text: "x", NotBefore: noon.Add(2 * time.Hour)})
		require.True(t, noon.Add(time.Hour).Equal(nextDue(t, box)))
		content := read(t, box.ScheduledPath())
		write(t, box.ScheduledPath(), strings.TrimPrefix(content, firstLine(t, box.ScheduledPath())))
		assert.True(t, noon.Add(2*time.Hour).Equal(nextDue(t, box)))
		send(t, box, inbox.Message{ID: "c", Text: "x", NotBefore: noon.Add(time.Hour)})
		assert.Equal(t, []string{"b", "c"}, scheduledIDs(t, box))
		require.NoError(t, os.Remove(box.ScheduledPath()))
		assert.True(t, nextDue(t, box).IsZero())
		assert.True(t, send(t, box, inbox.Message{ID: "a", Text: "x", NotBefore: noon.Add(time.Hour)}).Appended)
		assert.Equal(t, []string{"a"}, scheduledIDs(t, box))
	})
	t.Run("torn line", func(t *testing.T) {
		box := newBox(t, "")
		write(t, box.ScheduledPath(), staged("a", noon.Add(time.Hour)))
		send(t, box, inbox.Message{ID: "b", Text: "x", NotBefore: noon.Add(time.Hour)})
		assert.Equal(t, []string{"a", "b"}, scheduledIDs(t, box), "it got its newline")
	})
}

// A line that a power loss spoilt does not keep due entries from moving.
func TestPromotionBesideASpoiltLine(t *testing.T) {
	box := newBox(t, "")
	spoilt := `{"id":"lost","prompt":"` + strings.Repeat("\x00", 300<<10) + "x\"}\n"
	write(t, box.ScheduledPath(), staged("a", noon.Add(-time.Hour))+"\n"+spoilt)
	in(t, box, func(*inbox.Tx) {})
	assert.Equal(t, []string{"a"}, waitingIDs(t, box))
	assert.True(t, spoilt == read(t, box.ScheduledPath()), "it stays as it is")
}

// A line that somebody is writing to the inbox is not touched: due entries wait until it is whole
// or was taken for an entry.
func TestPromotionBesideATornLine(t *testing.T) {
	t.Parallel()
	start := func(t testing.TB, content string) *clock {
		now := clockOf(t, newBox(t, content))
		now.send(t, inbox.Message{ID: "due", Text: "x", NotBefore: noon.Add(time.Hour)})
		return now
	}
	t.Run("completed", func(t *testing.T) {
		now := start(t, "one\n")
		echo(t, now.box.Path(), "tor")
		now.set(noon.Add(2 * time.Hour))
		for range 3 {
			in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.In("s").Start(0, nil)) })
		}
		assert.Equal(t, "one\ntor", read(t, now.box.Path()))
		assert.Equal(t, []string{"due"}, scheduledIDs(t, now.box))
		assert.Equal(t, "one", turn(t, now.box))
		echo(t, now.box.Path(), "n\n")
		in(t, now.box, func(*inbox.Tx) {})
		assert.Equal(t, []string{"", "due"}, waitingIDs(t, now.box))
		assert.Equal(t, []string{"torn", "x"}, drain(t, now.box))
	})
	t.Run("delivered as it is", func(t *testing.T) {
		now := start(t, "")
		echo(t, now.box.Path(), "printf")
		now.set(noon.Add(2 * time.Hour))
		mark := still(t, now.box)
		in(t, now.box, func(tx *inbox.Tx) {
			e, err := tx.Next(mark)
			require.NoError(t, err)
			_, err = tx.Deliver(e, inbox.Recipient{})
			require.NoError(t, err)
		})
		in(t, now.box, func(*inbox.Tx) {})
		assert.Equal(t, []string{"due"}, waitingIDs(t, now.box))
		assert.Equal(t, "printf", viewOf(t, now.box).InFlight().Text())
		acknowledge(t, now.box, "done")
		assert.Equal(t, []string{"x"}, drain(t, now.box))
	})
	for name, tail := range map[string]string{"spaces": "  ", "a CR": "\r", "spaces of Unicode": "\u00a0\u2003"} {
		t.Run("nothing in it but "+name, func(t *testing.T) {
			now := start(t, "one\n"+tail)
			now.set(noon.Add(2 * time.Hour))
			in(t, now.box, func(*inbox.Tx) {})
			assert.Equal(t, []string{"one", "x"}, drain(t, now.box))
		})
	}
}

func TestPromotionIntoAnotherInbox(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t testing.TB, path string)
		want   []string
	}{
		"missing":   {func(t testing.TB, path string) { require.NoError(t, os.Remove(path)) }, []string{"due", "x"}},
		"truncated": {func(t testing.TB, path string) { require.NoError(t, os.Truncate(path, 0)) }, []string{"due", "x"}},
		"replaced":  {func(t testing.TB, path string) { replace(t, path, "new\n") }, []string{"new", "due", "x"}},
		"rewritten": {func(t testing.TB, path string) { rewrite(t, path, oldContent) }, []string{"one", "two", "three", "due", "x"}},
	} {
		for _, answered := range []int{0, 1, 3} {
			t.Run(fmt.Sprint(name, ", answered ", answered), func(t *testing.T) {
				now := clockOf(t, newBox(t, oldContent))
				now.send(t, inbox.Message{ID: "due", Text: "due", NotBefore: noon.Add(time.Hour)})
				for range answered {
					settle(t, now.box, answer(""))
				}
				c.change(t, now.box.Path())
				now.set(noon.Add(time.Hour))
				in(t, now.box, func(*inbox.Tx) {})
				now.send(t, inbox.Message{Text: "x"})
				assert.Equal(t, c.want, drain(t, now.box))
			})
		}
	}
	t.Run("never made", func(t *testing.T) {
		now := clockOf(t, open(t, filepath.Join(t.TempDir(), "later.jsonl")))
		now.send(t, inbox.Message{Text: "due", NotBefore: noon.Add(time.Hour)})
		assert.NoFileExists(t, now.box.Path())
		now.set(noon.Add(time.Hour))
		require.NoError(t, now.box.Promote(context.Background()))
		assert.Equal(t, []string{"due"}, drain(t, now.box))
	})
}

// Promote is for readers: it takes the lock only if something is due.
func TestPromote(t *testing.T) {
	now := clockOf(t, newBox(t, ""))
	now.send(t, inbox.Message{ID: "a", Text: "x", NotBefore: noon.Add(time.Hour)})
	tx := begin(t, now.box)
	require.NoError(t, now.box.Promote(context.Background()), "nothing is due, so the lock is not needed")
	require.NoError(t, tx.Close())
	now.set(noon.Add(time.Hour))
	require.NoError(t, now.box.Promote(context.Background()))
	assert.Equal(t, []string{"a"}, waitingIDs(t, now.box))
}

// A failed move is reported to readers. The entry stays due and is tried again.
func TestPromoteFails(t *testing.T) {
	now := clockOf(t, newBox(t, "one\n"))
	now.send(t, inbox.Message{ID: "a", Text: "x", NotBefore: noon.Add(time.Hour)})
	now.set(noon.Add(time.Hour))
	stop := crash.Observe(t, func(op disk.Op) error {
		if op.Kind == disk.OpWrite {
			return unix.EIO
		}
		return nil
	})
	require.ErrorIs(t, now.box.Promote(context.Background()), unix.EIO)
	assert.True(t, noon.Add(time.Hour+5*time.Second).Equal(nextDue(t, now.box)), "a hook that waits looks again")
	stop()
	require.NoError(t, now.box.Promote(context.Background()))
	assert.Equal(t, []string{"", "a"}, waitingIDs(t, now.box))
}

// However many processes find an entry due at once, it is moved once.
func TestPromotionByManyProcesses(t *testing.T) {
	box := newBox(t, "one\n")
	var content strings.Builder
	want := []string{""}
	for i := range 20 {
		want = append(want, fmt.Sprint(i))
		content.WriteString(staged(fmt.Sprint(i), noon.AddDate(-6, 0, 0)) + "\n")
	}
	write(t, box.ScheduledPath(), content.String())
	var all []*crash.Running
	for range 6 {
		all = append(all, child("promote", box).Start(t))
	}
	for _, r := range all {
		require.Equal(t, "ready", r.Line(t))
	}
	for _, r := range all {
		r.CloseInput(t)
	}
	for _, r := range all {
		r := r.Wait(t)
		require.Zero(t, r.ExitCode, r.Stderr)
	}
	assert.Equal(t, want, waitingIDs(t, box))
	assert.Empty(t, scheduledIDs(t, box))
}

// If the disk is full between moving an entry and removing it from the schedule, the entry is not
// moved twice. If it is full before, the entry is not lost.
func TestPromotionOnAFullDisk(t *testing.T) {
	for name, fails := range map[string]func(box *inbox.Inbox, op disk.Op) bool{
		"no journal": func(box *inbox.Inbox, op disk.Op) bool { return op.Path == beside(box, journal) },
		"no line":    func(box *inbox.Inbox, op disk.Op) bool { return op.Path == box.Path() },
		"no removal": func(box *inbox.Inbox, op disk.Op) bool { return op.Path == box.ScheduledPath()+".tmp" },
		"no cursor":  func(box *inbox.Inbox, op disk.Op) bool { return op.Path == beside(box, ".inbox-offset") },
	} {
		for _, stays := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", stays: ", stays), func(t *testing.T) {
				now := clockOf(t, newBox(t, "one\n"))
				turn(t, now.box)
				now.send(t, inbox.Message{ID: "due", Text: "x", NotBefore: noon.Add(time.Hour)})
				now.set(noon.Add(time.Hour))
				full := true
				stop := crash.Observe(t, func(op disk.Op) error {
					if full && (op.Kind == disk.OpWrite || op.Kind == disk.OpCreate) && fails(now.box, op) {
						return unix.ENOSPC
					}
					return nil
				})
				tx, err := now.box.Begin(context.Background())
				require.NoError(t, err)
				assert.NotEmpty(t, tx.Warnings())
				full = stays
				require.NoError(t, tx.Acknowledge("done"))
				err = tx.Commit()
				require.NoError(t, tx.Close())
				if !stays {
					require.NoError(t, err)
				}
				stop()
				for range 2 {
					in(t, now.box, func(*inbox.Tx) {})
				}
				if err != nil {
					acknowledge(t, now.box, "done")
				}
				assert.Len(t, results(t, now.box), 1)
				assert.Equal(t, []string{"due"}, waitingIDs(t, now.box))
				assert.Empty(t, scheduledIDs(t, now.box))
				assert.Equal(t, []string{"x"}, drain(t, now.box))
			})
		}
	}
}

// After a kill or a power loss at any call, each entry is in the inbox once or waits for its time,
// and none is lost.
func TestPromotionAtEveryCall(t *testing.T) {
	past, future := noon.AddDate(-6, 0, 0), noon.AddDate(100, 0, 0)
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) {
			write(t, filepath.Join(dir, "inbox.jsonl"), "one\n")
			write(t, filepath.Join(dir, ".scheduled.jsonl"), " "+staged("a", past)+"\n"+staged("later", future)+"\n"+staged("b", past)+"\n")
		},
		Run: func(dir string) crash.Command {
			return crash.Command{Name: "promote", Args: []string{filepath.Join(dir, "inbox.jsonl")}}
		},
	}
	check := func(t *testing.T, c crash.Crash) {
		box := open(t, filepath.Join(c.Dir, "inbox.jsonl"))
		for range 2 {
			in(t, box, func(*inbox.Tx) {})
			assert.Equal(t, []string{"", "a", "b"}, waitingIDs(t, box))
			assert.Equal(t, []string{"later"}, scheduledIDs(t, box))
		}
		assert.Equal(t, []string{"one", "text of a", "text of b"}, drain(t, box))
	}
	t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
	t.Run("power loss", func(t *testing.T) {
		s.EveryPowerLoss(t, 1, 2, func(t *testing.T, c crash.Crash) {
			reboot(t, "after the power loss")
			check(t, c)
		})
	})
}

func TestScheduledNames(t *testing.T) {
	box := newBox(t, "")
	at := noon.Add(time.Hour)
	send(t, box, inbox.Message{ID: "job", Text: "x", NotBefore: at})
	for _, again := range []inbox.Message{{ID: "job", Text: "x"}, {ID: "job", Text: "x", NotBefore: at}, {ID: "job", Text: "x", NotBefore: at.Add(time.Hour)}} {
		r := send(t, box, again)
		assert.Equal(t, inbox.FoundScheduled, r.Found)
		assert.Equal(t, at, *r.NotBefore)
	}
	assert.Equal(t, []string{"job"}, scheduledIDs(t, box))
	assert.NoFileExists(t, beside(box, "none"))
}

// A batch may be for now and for later.
func TestBatchForNowAndLater(t *testing.T) {
	now := clockOf(t, newBox(t, "one\n"))
	all := numbered(6)
	for _, i := range []int{1, 4} {
		all[i].NotBefore = noon.Add(time.Duration(6-i) * time.Hour)
	}
	receipts := sendAll(t, now.box, all...)
	checkReceipts(t, now.box, []inbox.Receipt{receipts[0], receipts[2], receipts[3], receipts[5]})
	assert.Equal(t, []string{"1", "4"}, scheduledIDs(t, now.box))
	now.set(noon.Add(9 * time.Hour))
	assert.Equal(t, []string{"one", "entry 0", "entry 2", "entry 3", "entry 5", "entry 1", "entry 4"}, drain(t, now.box))
}

// While the inbox ends in a torn line, scheduling need not wait.
func TestScheduleBesideATornLine(t *testing.T) {
	box := newBox(t, "torn")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("it waited"))
	r, err := box.Append(ctx, inbox.Message{Text: "x", NotBefore: noon.Add(time.Hour)}, time.Hour)
	require.NoError(t, err)
	assert.True(t, r.Appended)
	assert.Equal(t, "torn", read(t, box.Path()))
}

// Of very many due entries each transaction moves a part, in order. Entries that are not due stay.
func TestManyScheduled(t *testing.T) {
	t.Parallel()
	now := clockOf(t, newBox(t, ""))
	var content strings.Builder
	for i := range 5000 {
		at := noon.Add(-time.Hour)
		if i%5 == 0 {
			at = noon.Add(time.Hour)
		}
		content.WriteString(strings.Replace(staged(fmt.Sprint(i), at), "text of", "text of "+strings.Repeat("x", 300), 1) + "\n")
	}
	write(t, now.box.ScheduledPath(), content.String())
	assert.False(t, nextDue(t, now.box).After(noon), "a hook that waits looks again")
	first := strings.Count(read(t, now.box.Path()), "\n")
	assert.Greater(t, first, 2000)
	assert.Less(t, first, 4000)
	assert.Equal(t, noon.Add(time.Hour), nextDue(t, now.box).UTC())
	assert.Len(t, scheduledIDs(t, now.box), 1000)
	var ids []string
	for l := range strings.Lines(read(t, now.box.Path())) {
		id, _, _ := strings.Cut(strings.TrimPrefix(l, `{"id":"`), `"`)
		if id = strings.TrimSpace(id); id != "" {
			ids = append(ids, id)
		}
	}
	require.Len(t, ids, 4000)
	assert.Equal(t, []string{"1", "2", "3", "4", "6"}, ids[:5])
	assert.Equal(t, "4999", ids[3999])
	in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.In("s").Start(0, nil)) })
	s, err := now.box.Schedule()
	require.NoError(t, err)
	assert.Equal(t, inbox.Schedule{Count: 1000, Next: noon.Add(time.Hour).Local()}, inbox.Schedule{Count: s.Count, Next: s.Next.Local()})
}

// A process that looks again and again says once how many lines are no scheduled entries.
func TestForeignScheduledLinesAreSaidOnce(t *testing.T) {
	t.Parallel()
	box := newBox(t, "")
	warned := func() (n int) {
		in(t, box, func(tx *inbox.Tx) { n = len(tx.Warnings()) })
		return n
	}
	in(t, box, func(*inbox.Tx) {})
	path := beside(box, ".scheduled.jsonl")
	write(t, path, staged("later", time.Now().Add(time.Hour))+"\nnone\n")
	assert.Equal(t, []int{1, 0, 0}, []int{warned(), warned(), warned()})
	echo(t, path, "another\n")
	assert.Equal(t, []int{1, 0}, []int{warned(), warned()})
}
