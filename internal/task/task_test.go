package task_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/task"
	recovery "heartbeat/recover"
)

func newBox(t *testing.T, content string) *inbox.Inbox {
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	return box
}

// deliverTo puts the next entry in flight, to a client.
func deliverTo(t testing.TB, box *inbox.Inbox, pid int) {
	t.Helper()
	e := recovery.Evidence{Process: inbox.ProcessOf(pid)}
	in(t, box, func(tx *inbox.Tx) {
		next, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(next, inbox.Recipient{SessionID: "s", Evidence: e.Encode()})
		require.NoError(t, err)
	})
}

func in(t testing.TB, box *inbox.Inbox, do func(*inbox.Tx)) {
	t.Helper()
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Close()) }()
	do(tx)
	require.NoError(t, tx.Commit())
}

// self is a caller below this process, which is the client.
var self = task.Caller{PID: os.Getpid()}

func TestWhatAnAgentSays(t *testing.T) {
	box := newBox(t, `{"id":"job","prompt":"do it","m":1}`+"\n")
	_, err := task.InFlight(box, self)
	require.ErrorIs(t, err, task.ErrNone)
	deliverTo(t, box, os.Getpid())
	now, err := task.InFlight(box, self)
	require.NoError(t, err)
	assert.Equal(t, []any{"job", "do it", 1, "s", 0}, []any{now.ID, now.Text, now.Attempt, now.Session, now.Hops})

	now, err = task.Extend(t.Context(), box, self, time.Hour, "half of it")
	require.NoError(t, err)
	assert.Equal(t, "half of it", now.Progress.Text)
	now, err = task.Fail(t.Context(), box, self, "the disk is full", time.Hour)
	require.NoError(t, err)
	assert.Equal(t, inbox.VerdictFailed, now.Verdict.Kind)
	assert.WithinDuration(t, time.Now().Add(time.Hour), *now.Verdict.Until, time.Minute)
	now, err = task.Reject(t.Context(), box, self, "it makes no sense")
	require.NoError(t, err)
	assert.Equal(t, inbox.VerdictRejected, now.Verdict.Kind)
	now, err = task.Done(t.Context(), box, self, "42")
	require.NoError(t, err)
	assert.Equal(t, []any{inbox.VerdictDone, "42"}, []any{now.Verdict.Kind, now.Verdict.Text})
	assert.Equal(t, "half of it", now.Progress.Text)

	_, err = task.Fail(t.Context(), box, self, "", 0)
	require.ErrorContains(t, err, "a reason is needed")
	now, err = task.InFlight(box, self)
	require.NoError(t, err)
	assert.Equal(t, inbox.VerdictDone, now.Verdict.Kind, "what was refused changes nothing")
}

// A process that is not below the client that has the entry may say nothing of it.
func TestWhoMaySpeak(t *testing.T) {
	other := exec.Command("cat")
	in, err := other.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())
	t.Cleanup(func() { require.NoError(t, in.Close()); require.NoError(t, other.Wait()) })

	// A shell that has a child of its own, which says its number.
	client := exec.Command("sh", "-c", "sh -c 'echo $$; cat' <&3 & wait")
	client.ExtraFiles = []*os.File{stdin(t)}
	out, err := client.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, client.Start())
	t.Cleanup(func() { _ = client.ExtraFiles[0].Close(); _ = client.Process.Kill(); _ = client.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	var below int
	require.NoError(t, json.Unmarshal([]byte(line), &below))

	box := newBox(t, "one\n")
	deliverTo(t, box, client.Process.Pid)
	_, err = task.InFlight(box, task.Caller{PID: below})
	require.NoError(t, err)
	for _, pid := range []int{other.Process.Pid, os.Getpid(), 0, 1, -1} {
		_, err = task.Done(t.Context(), box, task.Caller{PID: pid}, "x")
		require.ErrorIs(t, err, task.ErrNone, pid)
		assert.ErrorContains(t, err, "is another session's")
	}
}

// stdin stays open until the test ends.
func stdin(t *testing.T) *os.File {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return r
}

func TestAClientThatIsNotKnown(t *testing.T) {
	box := newBox(t, "one\n")
	deliverTo(t, box, 0)
	_, err := task.InFlight(box, self)
	require.ErrorIs(t, err, task.ErrNone)
	assert.ErrorContains(t, err, "is not known")
}

func TestEnqueue(t *testing.T) {
	own, other := newBox(t, `{"id":"job","prompt":"x"}`+"\n"), newBox(t, "")
	m := inbox.Message{ID: "next", Text: "go on", Metadata: map[string]any{"team": "y"}}
	_, err := task.Enqueue(t.Context(), own, other, self, m, 0)
	require.ErrorIs(t, err, task.ErrNone)
	deliverTo(t, own, os.Getpid())
	r, err := task.Enqueue(t.Context(), own, other, self, m, 0)
	require.NoError(t, err)
	assert.True(t, r.Appended)
	deliverTo(t, other, os.Getpid())
	now, err := task.InFlight(other, self)
	require.NoError(t, err)
	assert.Equal(t, 1, now.Hops)
	assert.Equal(t, map[string]json.RawMessage{"team": json.RawMessage(`"y"`), "hops": json.RawMessage("1"), "enqueued_by": json.RawMessage(`"job"`)}, without(now.Metadata, "sent_at"))
	assert.NotContains(t, m.Metadata, "hops", "the caller's own map stays as it is")

	for _, name := range []string{"hops", "enqueued_by"} {
		m.Metadata = map[string]any{name: 0}
		_, err = task.Enqueue(t.Context(), own, other, self, m, 0)
		require.ErrorContains(t, err, "cannot be named")
	}
}

func without(m map[string]json.RawMessage, name string) map[string]json.RawMessage {
	delete(m, name)
	return m
}

// Two agents that hand work to each other come to an end.
func TestAgentsThatFeedEachOther(t *testing.T) {
	a, b := newBox(t, "begin\n"), newBox(t, "")
	for hops := 0; ; hops++ {
		deliverTo(t, a, os.Getpid())
		_, err := task.Enqueue(t.Context(), a, b, self, inbox.Message{Text: "your turn"}, 0)
		if hops == task.MaxHops {
			require.ErrorIs(t, err, task.ErrHops)
			return
		}
		require.NoError(t, err)
		in(t, a, func(tx *inbox.Tx) { require.NoError(t, tx.Acknowledge("")) })
		a, b = b, a
	}
}

func TestHopsThatCannotBeUnderstood(t *testing.T) {
	for _, hops := range []string{`"1"`, "-1", "1e99", "{}"} {
		box := newBox(t, `{"prompt":"x","hops":`+hops+"}\n")
		deliverTo(t, box, os.Getpid())
		_, err := task.Enqueue(t.Context(), box, box, self, inbox.Message{Text: "x"}, 0)
		require.ErrorIs(t, err, task.ErrHops, hops)
	}
}

func TestRate(t *testing.T) {
	box := newBox(t, "x\n")
	deliverTo(t, box, os.Getpid())
	_, err := task.Enqueue(t.Context(), box, box, self, inbox.Message{Text: "a"}, 1)
	require.NoError(t, err)
	_, err = task.Enqueue(t.Context(), box, box, self, inbox.Message{Text: "b"}, 1)
	var rate *inbox.RateError
	require.ErrorAs(t, err, &rate)
}
