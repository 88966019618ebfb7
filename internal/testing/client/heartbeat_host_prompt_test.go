package client

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/hosting/queue"
	"heartbeat/internal/testing/model"
	recovery "heartbeat/recover"
)

// hosted is a session whose prompts are entries, and its client.
type hosted struct {
	*rig
	queue   *queue.Queue
	session string // of the last client, if its command names it
	env     []string
}

// host is a session with these prompts.
func host(t *testing.T, how answers, prompts ...string) *hosted {
	t.Helper()
	h := &hosted{rig: newRig(t, how), env: []string{NoRetries}}
	h.Record("SessionStart", "UserPromptSubmit", "Stop", "StopFailure", "SessionEnd")
	q, err := queue.Open(queue.Options{
		Inbox: h.inbox, Own: true, Dir: t.TempDir(), Hook: h.stop, Cwd: h.Project, Env: h.environ(nil),
		Settings:   recovery.Settings{MaxAttempts: recovery.DefaultMaxAttempts},
		Background: time.Minute, Warn: func(s string) { t.Log(s) },
	})
	require.NoError(t, err)
	require.NoError(t, q.Claim(t.Context()))
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	h.queue = q
	h.put(prompts...)
	return h
}

func (h *hosted) put(prompts ...string) {
	h.t.Helper()
	for _, p := range prompts {
		_, ok, err := h.queue.Put(h.t.Context(), "", p)
		require.NoError(h.t, err)
		require.True(h.t, ok)
	}
}

// client starts the client of a round.
func (h *hosted) client(resume string, args ...string) *Run {
	h.t.Helper()
	argv, err := h.queue.Command(append(args, "--print", "--output-format", "stream-json", "--verbose"), resume)
	require.NoError(h.t, err)
	if h.session = ""; slices.Contains(argv, "--session-id") {
		h.session = argv[slices.Index(argv, "--session-id")+1]
	}
	prompt, ok, err := h.queue.First(h.t.Context())
	require.NoError(h.t, err)
	require.True(h.t, ok)
	run := &Run{}
	cmd := exec.Command(h.binary, argv[1:]...)
	cmd.Dir, cmd.Env = h.Project, h.queue.Environ(h.environ(h.env))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(prompt), &run.stdout, &run.stderr
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setsid: true}, 5*time.Second
	require.NoError(h.t, h.queue.Begin(h.t.Context()))
	require.NoError(h.t, cmd.Start())
	run.Process = h.watch(cmd)
	require.NoError(h.t, h.queue.Started(h.t.Context(), run.Pid()))
	return run
}

// settled ends the round, and returns what its client showed.
func (h *hosted) settled(run *Run) (queue.Exit, queue.Fates) {
	h.t.Helper()
	result, err := run.Wait(minutes(h.t))
	require.NoError(h.t, err)
	x := queue.Exit{Known: true}
	for line := range bytes.Lines([]byte(result.Stdout)) {
		takeIn(&x, line)
	}
	_, err = h.queue.Settle(context.Background(), x)
	require.NoError(h.t, err)
	fates, err := h.queue.Fates(nil)
	require.NoError(h.t, err)
	if h.t.Failed() {
		h.t.Log(result, h.state())
	}
	return x, fates
}

// takeIn takes in a message of the client's stream.
func takeIn(x *queue.Exit, line []byte) {
	var m struct {
		Type, Subtype, Error string
		Session              string `json:"session_id"`
		IsError              bool   `json:"is_error"`
		Turns                int    `json:"num_turns"`
		Message              struct {
			Model   string
			Content []struct{ Text string }
		}
	}
	if json.Unmarshal(line, &m) != nil {
		return
	}
	x.Session = m.Session
	x.Began = x.Began || m.Type != "system" || m.Subtype == "init"
	switch {
	case m.Type == "result":
		x.Succeeded, x.Turns = !m.IsError, m.Turns
	case m.Type == "assistant" && m.Message.Model != "<synthetic>":
		x.Asked, x.Failure = true, nil
	case m.Type == "assistant" && m.Error != "":
		x.Failure = &inbox.Failure{Error: m.Error, Message: m.Message.Content[0].Text}
	}
}

// replied are the replies by the entries' texts.
func (h *hosted) replied() map[string]string {
	all := map[string]string{}
	for _, r := range h.results() {
		all[r.Prompt] = r.Reply
	}
	return all
}

// whyDead is why the first dead letter is one.
func whyDead(f queue.Fates) string {
	for _, e := range f.Each {
		if e.Fate == "dead-lettered" {
			return e.Why
		}
	}
	return ""
}

func countsOf(f queue.Fates) []int {
	return []int{f.Answered, f.Queued, f.InFlight, f.DeadLettered}
}

// The prompt of the config is the client's own prompt, byte for byte, and each later one
// a turn: none is wasted.
func TestHostedPrompts(t *testing.T) {
	prompts := []string{"  first [e1]\n\n", "second [e2]", "/frobnicate [e3]"}
	for name, wait := range map[string]time.Duration{"model at once": 0, "model in 50 ms": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			h := host(t, func(tag string, nth int) model.Reply { return own(tag, nth).After(wait) }, prompts...)
			run := h.client("")
			x, fates := h.settled(run)
			assert.Equal(t, []int{3, 0, 0, 0}, countsOf(fates))
			assert.Equal(t, map[string]string{prompts[0]: "answer [e1]", prompts[1]: "answer [e2]", prompts[2]: "answer [e3]"}, h.replied())
			assert.Equal(t, 3, h.turns())
			assert.Equal(t, prompts[0], h.Model.MainRequests()[0].UserText)
			assert.Equal(t, h.session, x.Session)
			assert.True(t, x.Began && x.Asked && x.Failure == nil && x.Succeeded)
		})
	}
}

// Another round goes on with the conversation, and its prompt is an entry too.
func TestHostedRounds(t *testing.T) {
	h := host(t, own, "one [e1]")
	h.settled(h.client(""))
	h.put("one [e1]", "two [e2]") // the very same text, which was asked before
	resume, err := h.queue.Resumable(t.Context())
	require.NoError(t, err)
	require.Equal(t, h.Events("SessionStart")[0].Text("session_id"), resume)
	_, fates := h.settled(h.client(resume, "--continue"))
	assert.Equal(t, []int{3, 0, 0, 0}, countsOf(fates))
	assert.Equal(t, 3, h.turns())
	assert.Equal(t, resume, h.Events("SessionStart")[1].Text("session_id"))
	h.put("three [e3]")
	h.settled(h.client("", "--continue")) // whose session nobody knows beforehand
	assert.Empty(t, h.session)
	assert.Equal(t, "answer [e3]", h.replied()["three [e3]"])
}

// A client that is killed before its hook has bound the prompt never asked the model.
func TestHostedKilled(t *testing.T) {
	t.Run("at its start", func(t *testing.T) {
		h := host(t, own, "one [e1]")
		run := h.client("")
		run.Kill()
		_, fates := h.settled(run)
		assert.Equal(t, []int{0, 1, 0, 0}, countsOf(fates))
		_, fates = h.settled(h.client(""))
		assert.Equal(t, []int{1, 0, 0, 0}, countsOf(fates))
		assert.Equal(t, 1, h.turns())
	})
	t.Run("after its start", func(t *testing.T) {
		h := host(t, own, "one [e1]")
		run := h.client("")
		_, err := h.WaitEvent(minutes(t), "SessionStart", 1)
		require.NoError(t, err)
		run.Kill()
		_, fates := h.settled(run)
		asked := h.turns() > 0 || len(h.Events("UserPromptSubmit")) > 0
		assert.True(t, fates.Queued == 1 || asked && fates.DeadLettered == 1, "%+v", fates)
	})
	t.Run("in its turn", func(t *testing.T) {
		h := host(t, first("[e1]", model.Hang()), "one [e1]", "two [e2]")
		run := h.client("")
		h.asked(minutes(t), "[e1]", 1)
		run.Kill()
		_, fates := h.settled(run)
		assert.Equal(t, []int{0, 1, 0, 1}, countsOf(fates))
		assert.Equal(t, string(inbox.ReasonOrphaned), whyDead(fates))
	})
}

// An error of the API ends the client: the entry goes back, and delivery is held.
func TestHostedFailures(t *testing.T) {
	for name, reply := range map[string]model.Reply{"rate limit": model.Error(429, "rate_limit_error", "slow down"), "bad request": model.Error(400, "invalid_request_error", "bad")} {
		t.Run(name, func(t *testing.T) {
			h := host(t, func(string, int) model.Reply { return reply }, "one [e1]")
			x, fates := h.settled(h.client(""))
			assert.Equal(t, []int{0, 1, 0, 0}, countsOf(fates))
			require.NotNil(t, x.Failure)
			n, err := h.queue.Waiting(t.Context())
			require.NoError(t, err)
			assert.True(t, n.Waits && n.Any(), "%+v", n)
		})
	}
}

// What the client takes for a command of its own reaches no model, and is no answer.
func TestHostedCommands(t *testing.T) {
	for _, command := range []string{"/cost", "/clear", "/compact", "/help"} {
		t.Run(command, func(t *testing.T) {
			h := host(t, own, command, "two [e2]")
			_, fates := h.settled(h.client(""))
			assert.Equal(t, []int{0, 1, 0, 1}, countsOf(fates))
			assert.Equal(t, string(inbox.ReasonCommand), whyDead(fates))
			_, fates = h.settled(h.client(""))
			assert.Equal(t, []int{1, 0, 0, 1}, countsOf(fates))
		})
	}
	t.Run("/init", func(t *testing.T) { // a prompt that the client writes out
		h := host(t, own, "/init")
		_, fates := h.settled(h.client(""))
		assert.Equal(t, []int{1, 0, 0, 0}, countsOf(fates))
	})
	t.Run("a mebibyte", func(t *testing.T) {
		long := "[e1]" + strings.Repeat(" x", 1<<19)
		h := host(t, own, long)
		_, fates := h.settled(h.client(""))
		assert.Equal(t, []int{1, 0, 0, 0}, countsOf(fates))
		assert.Equal(t, long, h.Model.MainRequests()[0].UserText)
	})
}

// A client that cannot begin has had no prompt.
func TestHostedRefused(t *testing.T) {
	h := host(t, own, "one [e1]")
	run := h.client("", "--no-such-flag")
	x, fates := h.settled(run)
	assert.False(t, x.Began)
	assert.Equal(t, []int{0, 1, 0, 0}, countsOf(fates))
	left, err := filepath.Glob(filepath.Join(filepath.Dir(h.inbox), ".in-flight"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
