package notify_test

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

	"heartbeat/inbox"
	"heartbeat/internal/notify"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// rig is an inbox with a clock, and a command that keeps what it is told.
type rig struct {
	testing.TB
	box   *inbox.Inbox
	clock time.Time
	dir   string
	o     notify.Options
}

func newRig(t testing.TB, entries ...string) *rig {
	t.Helper()
	r := &rig{TB: t, clock: noon, dir: t.TempDir()}
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(append(entries, ""), "\n")), 0o600))
	box, err := inbox.Open(path, inbox.Options{Now: func() time.Time { return r.clock }})
	require.NoError(t, err)
	r.box = box
	r.o = notify.Options{Command: "cat >>'" + r.dir + "/told'", Now: func() time.Time { return r.clock }}
	return r
}

// in runs and commits one transaction.
func (r *rig) in(f func(tx *inbox.Tx) error) {
	r.Helper()
	tx, err := r.box.Begin(context.Background())
	require.NoError(r, err)
	require.NoError(r, f(tx))
	require.NoError(r, tx.Commit())
	require.NoError(r, tx.Close())
}

// deliver puts the next entry in flight, with a session that is not known.
func (r *rig) deliver() {
	r.Helper()
	r.in(func(tx *inbox.Tx) error {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(r, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
		return err
	})
}

func (r *rig) deadLetter(reason inbox.Reason) {
	r.Helper()
	r.deliver()
	r.in(func(tx *inbox.Tx) error { return tx.DeadLetter(reason) })
}

func (r *rig) tell(launcher ...notify.Occasion) notify.Report {
	r.Helper()
	report, err := notify.Tell(context.Background(), r.box, r.o, launcher...)
	require.NoError(r, err)
	return report
}

// told takes what the command was told.
func (r *rig) told() (all []map[string]any) {
	r.Helper()
	path := filepath.Join(r.dir, "told")
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(r, err)
	require.NoError(r, os.Remove(path))
	for l := range strings.Lines(string(b)) {
		var o map[string]any
		require.NoError(r, json.Unmarshal([]byte(l), &o), l)
		all = append(all, o)
	}
	return all
}

func whats(all []map[string]any) (list []string) {
	for _, o := range all {
		list = append(list, fmt.Sprint(o["what"]))
	}
	return list
}

func lines(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf(`{"prompt":"do %d","id":"job-%d"}`, i, i))
	}
	return all
}

// Each occasion is told once.
func TestOnce(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(r *rig)
		want []string
	}{
		"nothing":     {func(*rig) {}, nil},
		"dead letter": {func(r *rig) { r.deadLetter(inbox.ReasonOrphaned) }, []string{"dead-letter"}},
		"canceled by a person": {func(r *rig) {
			r.deadLetter(inbox.ReasonCanceled)
		}, nil},
		"not counted": {func(r *rig) {
			r.in(func(tx *inbox.Tx) error { tx.In("s").NoteUncounted("its meter is a folder"); return nil })
		}, []string{"fault"}},
		"over its limit": {func(r *rig) { r.deadLetter("over_budget") }, []string{"limit"}},
		"pause": {func(r *rig) {
			r.in(func(tx *inbox.Tx) error { _, err := tx.Holds().Pause("the build server is down", nil); return err })
		}, []string{"paused"}},
		"a day's limit": {func(r *rig) {
			until := r.clock.Add(2 * time.Hour)
			r.in(func(tx *inbox.Tx) error {
				_, err := tx.Holds().Pause("today cost 50.20 of 50.00 USD (the limit of a day)", &until)
				return err
			})
		}, []string{"limit"}},
		"question": {func(r *rig) {
			r.in(func(tx *inbox.Tx) error { return tx.In("s").Start(os.Getpid(), nil) })
			r.in(func(tx *inbox.Tx) error { return tx.In("s").Ask("permission_prompt", "Claude needs you") })
			r.in(func(tx *inbox.Tx) error { return tx.In("s").Ask("permission_prompt", "Claude needs you") })
		}, []string{"question"}},
		"answered question": {func(r *rig) {
			r.in(func(tx *inbox.Tx) error { return tx.In("s").Ask("permission_prompt", "Claude needs you") })
			r.in(func(tx *inbox.Tx) error { tx.In("s").StopAsking(); return nil })
		}, nil},
		"sessions fail": {func(r *rig) {
			for i := range 3 {
				id := fmt.Sprint("s", i)
				r.clock = r.clock.Add(time.Minute)
				r.in(func(tx *inbox.Tx) error { return tx.In(id).Start(1, nil) })
				r.in(func(tx *inbox.Tx) error { return tx.In(id).End() })
			}
		}, []string{"failing"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, lines(2)...)
			assert.Empty(t, r.tell().Told)
			c.do(r)
			r.tell()
			got := r.told()
			assert.Equal(t, c.want, whats(got))
			r.clock = r.clock.Add(time.Hour)
			r.tell()
			assert.Empty(t, r.told(), "again")
			for _, o := range got {
				assert.EqualValues(t, 1, o["v"])
				assert.Equal(t, r.box.Path(), o["inbox"])
				assert.NotEmpty(t, o["text"])
				assert.Contains(t, o["type_this"], "heartbeat ")
			}
		})
	}
}
