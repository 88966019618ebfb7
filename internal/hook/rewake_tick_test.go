package hook

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// waitingSince returns a hook that has waited for age after an event of session s0. The client is not named.
func waitingSince(t *testing.T, path, event string, age time.Duration) *hook {
	t.Helper()
	t.Setenv("CLAUDE_PID", "")
	change(t, path, func(_ *inbox.Inbox, tx *inbox.Tx) { require.NoError(t, tx.In("s0").Wait("w")) })
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	return &hook{
		Flags:   Flags{Dialogue: Dialogue{Rewake: true}},
		box:     box,
		voice:   voice{Streams: cli.Streams{Err: &words.Head{Most: maxNotes}}},
		call:    call{input: &claude.Input{Event: event, SessionID: "s0", PromptID: "p1"}},
		carried: carried{Began: machine.SinceBoot() - int64(age), Waiter: "w"},
	}
}

// An entry that the session did not take up reaches it again, once its turn has been over for a
// while. That does not count as an attempt.
func TestNotTakenUp(t *testing.T) {
	for name, c := range map[string]struct {
		bound bool
		age   time.Duration
		want  outcome
	}{
		"at once":           {false, 0, held},
		"shortly after":     {false, takeUpWait - 5*time.Second, held},
		"after a while":     {false, takeUpWait + time.Second, delivered},
		"taken up long ago": {true, 1000 * time.Hour, held},
	} {
		t.Run(name, func(t *testing.T) {
			path := newInbox(t, "A\nB\nC\n")
			wokenInFlight(t, path, c.bound)
			h := waitingSince(t, path, claude.EventStop, c.age)
			o, err := h.transact(t.Context(), inbox.Mark{}, h.decideWake)
			require.NoError(t, err)
			assert.Equal(t, c.want, o)
			events := eventsOf(t, h.box)
			look(t, path, func(_ *inbox.Inbox, tx *inbox.Tx) {
				require.NotNil(t, tx.InFlight())
				assert.Equal(t, "A", tx.InFlight().Text())
				assert.Equal(t, 1, tx.InFlight().Attempt)
			})
			if c.want == held {
				assert.Empty(t, events)
				assert.Positive(t, h.again, "it looks again, since the session that is at it may die")
				return
			}
			assert.Contains(t, h.wakeText, "\n\nA")
			require.Len(t, events, 1)
			assert.Equal(t, inbox.EventRedelivered, events[0].Event)
			assert.True(t, events[0].Uncounted)
		})
	}
}

// While hooks are disabled, no hook is told of the turn that an entry became. The transcript shows that the text arrived,
// so the entry is not handed over again.
func TestTakenUpUnseen(t *testing.T) {
	path := newInbox(t, "A\nB\nC\n")
	wokenInFlight(t, path, false)
	look(t, path, func(_ *inbox.Inbox, tx *inbox.Tx) {
		line, err := json.Marshal(map[string]any{"type": "user", "promptId": "p0", "message": map[string]any{
			"content": "Stop hook blocking error from command: " + recovery.EvidenceOf(tx.InFlight()).Handed(tx.InFlight()),
		}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "transcript.jsonl"), append(line, '\n'), 0o600))
	})
	h := waitingSince(t, path, claude.EventStop, takeUpWait+time.Second)
	o, err := h.transact(t.Context(), inbox.Mark{}, h.decideWake)
	require.NoError(t, err)
	assert.Equal(t, delivered, o)
	assert.Contains(t, h.wakeText, "\n\nB")
	letters, err := os.ReadFile(h.box.DeadLetterPath())
	require.NoError(t, err)
	assert.Contains(t, string(letters), `"reason":"interrupted"`)
}

// A session that has just started gets time to ask for what it was started with. After a turn it is
// woken at once, and after its end never.
func TestSessionIsLeftTime(t *testing.T) {
	for name, c := range map[string]struct {
		event string
		age   time.Duration
		ended bool
		want  outcome
	}{
		"just started":      {claude.EventSessionStart, 0, false, held},
		"started":           {claude.EventSessionStart, startWait + time.Second, false, delivered},
		"its turn ended":    {claude.EventStop, 0, false, delivered},
		"its turn failed":   {claude.EventStopFailure, 0, false, delivered},
		"it ended":          {claude.EventStop, time.Hour, true, held},
		"it ended at start": {claude.EventSessionStart, time.Hour, true, held},
	} {
		t.Run(name, func(t *testing.T) {
			path := newInbox(t, "A\nB\nC\n")
			change(t, path, func(_ *inbox.Inbox, tx *inbox.Tx) {
				require.NoError(t, tx.In("s0").Start(0, nil))
				if c.ended {
					require.NoError(t, tx.In("s0").End())
				}
			})
			h := waitingSince(t, path, c.event, c.age)
			o, err := h.transact(t.Context(), inbox.Mark{}, h.decideWake)
			require.NoError(t, err)
			assert.Equal(t, c.want, o)
		})
	}
}

// A hook that waits under another name is another hook.
func TestAnotherOneWaits(t *testing.T) {
	path := newInbox(t, "A\nB\nC\n")
	h := waitingSince(t, path, claude.EventStop, 0)
	h.Waiter = "v"
	o, err := h.transact(t.Context(), inbox.Mark{}, h.decideWake)
	require.NoError(t, err)
	assert.Equal(t, leave, o)
	look(t, path, func(_ *inbox.Inbox, tx *inbox.Tx) {
		assert.Nil(t, tx.InFlight())
		w, err := tx.Waiter()
		require.NoError(t, err)
		assert.Equal(t, "w", w.Name)
	})
}

// A session died over an entry that is in a file. The session woken in its place finds the file.
func TestSpilledAgain(t *testing.T) {
	path := newInbox(t, "L"+strings.Repeat("x", 200_000)+"\n")
	wokenInFlight(t, path, true)
	change(t, path, func(_ *inbox.Inbox, tx *inbox.Tx) {
		d := tx.InFlight()
		e := recovery.EvidenceOf(d)
		e.PID, e.ProcessStart, e.Namespace = 99_999_999, 1, machine.PIDNamespace()
		require.NoError(t, tx.Bind(inbox.Recipient{SessionID: "dead", PromptID: "p", Evidence: e.Encode()}))
	})
	h := waitingSince(t, path, claude.EventStop, 0)
	h.Orphan = recovery.Settings{Policy: "retry", MaxAttempts: 3}
	o, err := h.transact(t.Context(), inbox.Mark{}, h.decideWake)
	require.NoError(t, err)
	require.Equal(t, delivered, o)
	look(t, path, func(_ *inbox.Inbox, tx *inbox.Tx) {
		assert.Equal(t, 2, tx.InFlight().Attempt)
		assert.FileExists(t, recovery.EvidenceOf(tx.InFlight()).Spill)
	})
}

// A waiting hook leaves an entry to its living owner and says so once, whatever the owner does
// next. An owner in another namespace cannot be examined, and counts as gone.
func TestWaitsForAnotherOwner(t *testing.T) {
	parent := inbox.ProcessOf(os.Getppid())
	elsewhere := parent
	elsewhere.Namespace = "another"
	for name, c := range map[string]struct {
		owner inbox.Process
		want  outcome
	}{"lives": {parent, held}, "cannot be told": {elsewhere, delivered}} {
		t.Run(name, func(t *testing.T) {
			path := newInbox(t, "A\nB\nC\n")
			e := recovery.Evidence{Process: c.owner}
			deliver := func(_ *inbox.Inbox, tx *inbox.Tx) {
				if tx.InFlight() != nil {
					require.NoError(t, tx.Acknowledge("done"))
				}
				next, err := tx.Next(inbox.Mark{})
				require.NoError(t, err)
				_, err = tx.Deliver(next, inbox.Recipient{SessionID: "other", PromptID: "p", Evidence: e.Encode()})
				require.NoError(t, err)
			}
			change(t, path, deliver)
			h := waitingSince(t, path, claude.EventStop, 0)
			h.Orphan = recovery.Settings{Policy: "retry", MaxAttempts: 3}
			o, err := h.transact(t.Context(), inbox.Mark{}, h.decideWake)
			require.NoError(t, err)
			require.Equal(t, c.want, o)
			if c.want != held {
				return
			}
			died := h.ownerDied
			require.NotNil(t, died)
			change(t, path, deliver)
			_, err = h.transact(t.Context(), inbox.Mark{}, h.decideWake)
			require.NoError(t, err)
			assert.Equal(t, died, h.ownerDied, "the same process is followed twice")
			assert.Equal(t, 1, strings.Count(h.Err.(*words.Head).String(), "is left to that one"))
		})
	}
}

// A prompt that arrived while the hook started puts the session to work. An earlier prompt does
// not, wherever the wall clock was set since.
func TestPromptedWhileStarting(t *testing.T) {
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		clock time.Duration
		age   time.Duration
		want  outcome
	}{
		"before":                          {0, 0, 0},
		"before, and the clock went back": {day, 0, 0},
		"since":                           {0, time.Minute, held},
		"since, and the clock went on":    {-day, time.Minute, held},
	} {
		t.Run(name, func(t *testing.T) {
			path := newInbox(t, "A\nB\nC\n")
			box, err := inbox.Open(path, inbox.Options{Now: func() time.Time { return time.Now().Add(c.clock) }})
			require.NoError(t, err)
			tx, err := box.Begin(t.Context())
			require.NoError(t, err)
			defer func() { require.NoError(t, tx.Close()) }()
			require.NoError(t, tx.In("s0").Prompt("p0"))
			h := &hook{call: call{input: &claude.Input{SessionID: "s0"}}, carried: carried{Began: machine.SinceBoot() - int64(c.age), Waiter: "w"}}
			o, err := h.startWaiting(tx)
			require.NoError(t, err)
			assert.Equal(t, c.want, o)
		})
	}
}

// wokenInFlight leaves the next entry in flight in session s0.
func wokenInFlight(t testing.TB, path string, bound bool) {
	t.Helper()
	change(t, path, func(box *inbox.Inbox, tx *inbox.Tx) {
		DeliverWoken(t, box, tx, filepath.Join(filepath.Dir(path), "transcript.jsonl"), bound)
	})
}

func eventsOf(t testing.TB, box *inbox.Inbox) (all []inbox.Event) {
	t.Helper()
	content, err := os.ReadFile(box.EventsPath())
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	for line := range bytes.Lines(content) {
		var e inbox.Event
		require.NoError(t, json.Unmarshal(line, &e))
		all = append(all, e)
	}
	return all
}
