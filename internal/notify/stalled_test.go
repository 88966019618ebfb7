package notify_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/notify"
	recovery "heartbeat/recover"
)

// stallRig has an inbox whose oldest entry came at noon.
func stallRig(t *testing.T) *rig {
	r := newRig(t, lines(3)...)
	require.NoError(t, os.Chtimes(r.box.Path(), noon, noon))
	r.o.Stall = 20 * time.Minute
	return r
}

// stalls looks every five minutes, as a timer does, and returns when it was told.
func (r *rig) stalls(looks int, between func(look int)) (after []time.Duration) {
	r.Helper()
	for i := range looks {
		r.tell()
		for _, o := range r.told() {
			if o["what"] == "stalled" {
				after = append(after, r.clock.Sub(noon))
			}
		}
		r.clock = r.clock.Add(5 * time.Minute)
		between(i)
	}
	return after
}

func TestStalled(t *testing.T) {
	minutes := func(n ...int) (all []time.Duration) {
		for _, m := range n {
			all = append(all, time.Duration(m)*time.Minute)
		}
		return all
	}
	idle := func(*rig, int) {}
	deliver := func(r *rig) {
		transcript := filepath.Join(r.dir, "session.jsonl")
		require.NoError(r, os.WriteFile(transcript, nil, 0o600))
		require.NoError(r, os.Chtimes(transcript, noon, noon))
		r.in(func(tx *inbox.Tx) error {
			e, err := tx.Next(inbox.Mark{})
			require.NoError(r, err)
			_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s", Evidence: recovery.Evidence{Transcript: transcript}.Encode()})
			return err
		})
	}
	write := func(r *rig, name, text string) {
		path := filepath.Join(r.dir, name)
		require.NoError(r, os.MkdirAll(filepath.Dir(path), 0o700))
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(r, err)
		_, err = f.WriteString(text + "\n")
		require.NoError(r, err)
		require.NoError(r, f.Close())
		require.NoError(r, os.Chtimes(path, r.clock, r.clock))
	}
	touch := func(r *rig, name string) { write(r, name, r.clock.String()) }
	const asks = `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1"},{"type":"tool_use","id":"t2"}]}}`
	has := func(id string) string {
		return `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"` + id + `"}]}}`
	}
	for name, c := range map[string]struct {
		begin   func(r *rig)
		between func(r *rig, look int)
		want    []time.Duration
	}{
		"nobody comes": {func(*rig) {}, idle, minutes(20)},
		"producers go on": {func(*rig) {}, func(r *rig, look int) {
			_, err := r.box.Append(r.Context(), inbox.Message{Text: fmt.Sprint("more ", look)}, 0)
			require.NoError(r, err)
		}, minutes(20)},
		"nothing waits":       {func(r *rig) { require.NoError(r, os.Truncate(r.box.Path(), 0)) }, idle, nil},
		"a turn does not end": {deliver, idle, minutes(20)},
		"a turn goes on":      {deliver, func(r *rig, _ int) { touch(r, "session.jsonl") }, nil},
		"a tool runs":         {func(r *rig) { deliver(r); write(r, "session.jsonl", asks) }, idle, nil},
		"one of two tools runs": {func(r *rig) { deliver(r); write(r, "session.jsonl", asks+"\n"+has("t2")) }, func(r *rig, look int) {
			if look == 4 {
				write(r, "session.jsonl", has("t1"))
			}
		}, minutes(45)},
		"a subagent goes on": {deliver, func(r *rig, _ int) { touch(r, "session/subagents/agent-1.jsonl") }, nil},
		"it goes on for a while": {deliver, func(r *rig, look int) {
			if look < 3 {
				touch(r, "session.jsonl")
			}
		}, minutes(35)},
		"twice": {deliver, func(r *rig, look int) {
			if look == 5 {
				touch(r, "session.jsonl")
			}
		}, minutes(20, 50)},
		"answered in time": {func(*rig) {}, func(r *rig, look int) {
			if look < 3 {
				r.deliver()
				r.in(func(tx *inbox.Tx) error { return tx.Acknowledge("done") })
			}
		}, nil},
		"paused": {func(r *rig) {
			r.in(func(tx *inbox.Tx) error { _, err := tx.Holds().Pause("why", nil); return err })
		}, idle, nil},
		"resumed": {func(r *rig) {
			r.in(func(tx *inbox.Tx) error { _, err := tx.Holds().Pause("why", nil); return err })
		}, func(r *rig, look int) {
			if look == 5 {
				r.in(func(tx *inbox.Tx) error { return tx.Holds().Resume() })
			}
		}, minutes(50)},
		"the clock is set forward and back": {deliver, func(r *rig, look int) {
			if look == 1 {
				r.clock = noon.Add(-time.Hour)
			}
		}, minutes(-40)},
	} {
		t.Run(name, func(t *testing.T) {
			r := stallRig(t)
			c.begin(r)
			assert.Equal(t, c.want, r.stalls(12, func(look int) { c.between(r, look) }))
		})
	}
}

// A first look at an inbox that has stood still for long says so at once.
func TestStalledLongAgo(t *testing.T) {
	r := stallRig(t)
	r.clock = noon.Add(2 * time.Hour)
	all, err := notify.Pending(t.Context(), r.box, r.o)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, noon, all[0].Since.UTC())
	assert.Contains(t, all[0].Text, "nothing has moved in ")
	assert.Contains(t, all[0].Text, "for 2h")
}

// An entry that is due and cannot be moved to the queue is told, whatever else moves.
func TestOverdue(t *testing.T) {
	for name, queued := range map[string][]string{"nothing else": nil, "others wait": lines(3)} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, queued...)
			r.o.Stall = 20 * time.Minute
			write := func(text string) {
				require.NoError(t, os.WriteFile(r.box.ScheduledPath(), []byte(text), 0o600))
			}
			write(`{"id":"later","prompt":"x","not_before":"` + noon.Format(time.RFC3339) + `"}` + "\n")
			said := func(after time.Duration) (all []string) {
				r.clock = noon.Add(after)
				require.NoError(t, os.Chtimes(r.box.Path(), r.clock, r.clock)) // others come
				occasions, err := notify.Pending(t.Context(), r.box, r.o)
				require.NoError(t, err)
				for _, o := range occasions {
					if o.Reason == "scheduled" || o.What == notify.Fault {
						all = append(all, o.Text)
					}
				}
				return all
			}
			assert.Empty(t, said(19*time.Minute))
			assert.Len(t, said(20*time.Minute), 1)
			r.tell()
			assert.Empty(t, said(40*time.Minute), "it was told")
			write("")
			assert.Empty(t, said(time.Hour))
			require.NoError(t, os.Remove(r.box.ScheduledPath()))
			require.NoError(t, os.Mkdir(r.box.ScheduledPath(), 0o700))
			assert.Len(t, said(time.Hour), 1, "what is scheduled cannot be read")
		})
	}
}
