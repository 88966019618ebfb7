package queue

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
	"heartbeat/internal/machine"
	"heartbeat/internal/testing/crash"
)

func TestMain(m *testing.M) {
	crash.Main(m, map[string]func() int{"host": hostChild, "hook": hookChild, "settle": settleChild})
}

// hostChild is a host up to the start of its client, in the folder that it is given.
func hostChild() int {
	machine.TestOnlyTrustAll = true
	dir, ctx := os.Args[1], context.Background()
	q, err := Open(options(dir))
	if err == nil {
		_, _, err = q.Put(ctx, "a", "do A")
	}
	if err == nil {
		crash.Promise("put")
		_, err = q.Command(nil, "")
	}
	if err == nil {
		_, _, err = q.First(ctx)
	}
	if err == nil {
		err = q.Begin(ctx)
	}
	if err == nil {
		crash.Promise("begun")
		err = q.Started(ctx, os.Getppid())
	}
	return statusOf(err)
}

// hookChild is a hook with these arguments.
func hookChild() int {
	machine.TestOnlyTrustAll = true
	return hook.Run(os.Args[1:], cli.Streams{Command: hook.CommandName, In: os.Stdin, Out: printed{}, Err: os.Stderr})
}

// printed is a stdout that promises what went out.
type printed struct{}

func (printed) Write(b []byte) (int, error) {
	crash.Promise("printed")
	return len(b), nil
}

// settleChild decides about what a dead host's client left.
func settleChild() int {
	machine.TestOnlyTrustAll = true
	q, err := Open(options(os.Args[1]))
	if err == nil {
		_, err = q.Settle(context.Background(), Exit{})
	}
	return statusOf(err)
}

func statusOf(err error) int {
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		return 1
	}
	return 0
}

// left is the queue in what a crash left.
func left(t *testing.T, c crash.Crash) *rig {
	r := &rig{t: t, dir: c.Dir}
	r.Queue = r.open()
	return r
}

// goesOn is the next host of the session: it puts the prompt again, not knowing whether
// that had happened, settles, and works through the inbox.
func (r *rig) goesOn(x Exit) {
	r.t.Helper()
	ctx := context.Background()
	_, _, err := r.Put(ctx, "a", "do A")
	require.NoError(r.t, err)
	r.settle(x)
	for {
		n, err := r.Waiting(ctx)
		require.NoError(r.t, err)
		if !n.Waits {
			break
		}
		c, p := r.round("")
		c.prompt = "after the crash"
		c.start()
		c.submit(p)
		for text, active := p, false; text != ""; active = true {
			text = c.stop(text+" again", active)
		}
		r.settle(seen)
	}
	f, err := r.Fates(nil)
	require.NoError(r.t, err)
	assert.Zero(r.t, f.Queued+f.InFlight)
}

func afterPowerLoss(check func(*testing.T, crash.Crash)) func(*testing.T, crash.Crash) {
	return func(t *testing.T, c crash.Crash) {
		machine.TestOnlyBootID = "the next boot"
		defer func() { machine.TestOnlyBootID = "" }()
		check(t, c)
	}
}

// trust lets a copy be looked at, which is not where it was written.
func trust(t *testing.T) {
	machine.TestOnlyTrustAll = true
	t.Cleanup(func() { machine.TestOnlyTrustAll = false })
}

// TestKilledHost kills the host at each call before its client runs: nobody has got the
// prompt, and it is answered once.
func TestKilledHost(t *testing.T) {
	trust(t)
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) { require.NoError(t, os.Mkdir(filepath.Join(dir, "inbox"), 0o700)) },
		Run:   func(dir string) crash.Command { return crash.Command{Name: "host", Args: []string{dir}} },
	}
	check := func(t *testing.T, c crash.Crash) {
		r := left(t, c)
		r.goesOn(Exit{})
		assert.Equal(t, map[string]string{"do A": "do A again"}, r.replies())
		assert.Equal(t, answered, r.fates(), "nobody had the prompt: %v", c.Promised)
	}
	s.EveryKill(t, check)
	if !testing.Short() {
		s.EveryPowerLoss(t, 1, 1, afterPowerLoss(check))
	}
}

// begun is a session whose client runs, with the entries A and B, up to the event.
func begun(until func(c *standIn, prompt string)) func(testing.TB, string) {
	return func(tb testing.TB, dir string) {
		t := tb.(*testing.T)
		require.NoError(t, os.Mkdir(filepath.Join(dir, "inbox"), 0o700))
		r := &rig{t: t, dir: dir}
		r.Queue = r.open()
		for _, text := range []string{"do A", "do B"} {
			_, _, err := r.Put(t.Context(), strings.ToLower(text[3:]), text)
			require.NoError(t, err)
		}
		c, p := r.round("")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "session"), []byte(c.session), 0o600))
		until(c, p)
	}
}

// hookCommand is the hook of the client that runs in a folder, for an event.
func hookCommand(event string, more map[string]any) func(string) crash.Command {
	return func(dir string) crash.Command {
		in := map[string]any{
			"hook_event_name": event, "session_id": sessionIn(dir), "prompt_id": "p1",
			"transcript_path": filepath.Join(dir, "transcript.jsonl"),
		}
		for k, v := range more {
			in[k] = v
		}
		text, err := json.Marshal(in)
		if err != nil {
			panic(err)
		}
		return crash.Command{Name: "hook", Args: argsIn(dir), Stdin: string(text), Env: []string{"CLAUDE_PID=", "CLAUDE_CODE_ENTRYPOINT=sdk-cli"}}
	}
}

func argsIn(dir string) []string {
	text, err := os.ReadFile(filepath.Join(dir, "settings.json"))
	if err != nil {
		panic(err)
	}
	return hookOf(text)
}

// sessionIn is the session of the client that runs in a folder, "s" in one where none does.
func sessionIn(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "session"))
	if err != nil {
		return "s"
	}
	return string(text)
}

// TestKilledHookThatBinds kills the hook that should bind the prompt, at each of its
// calls. The client goes on, and its transcript shows what the hook could not note.
func TestKilledHookThatBinds(t *testing.T) {
	trust(t)
	s := crash.Scenario{
		Setup: begun(func(c *standIn, p string) {
			c.start()
			c.wrotePrompt(p)
		}),
		Run: hookCommand("UserPromptSubmit", map[string]any{"prompt": "do A"}),
	}
	s.EveryKill(t, func(t *testing.T, c crash.Crash) {
		r := left(t, c)
		cl := r.client([]string{"--session-id", sessionIn(c.Dir), "--settings", filepath.Join(c.Dir, "settings.json")})
		assert.Equal(t, "do B", cl.stop("A done", false))
		assert.Empty(t, cl.stop("B done", true))
		assert.Equal(t, map[string]string{"do A": "A done", "do B": "B done"}, r.replies())
	})
}

// TestKilledHookAndClient kills the client with it: the entry went nowhere, or is in the
// hands of the policy. It counts as answered only where another turn answers it.
func TestKilledHookAndClient(t *testing.T) {
	trust(t)
	s := crash.Scenario{
		Setup: begun(func(c *standIn, _ string) { c.start() }),
		Run:   hookCommand("UserPromptSubmit", map[string]any{"prompt": "do A"}),
	}
	check := func(t *testing.T, c crash.Crash) {
		r := left(t, c)
		r.goesOn(Exit{})
		f := r.fates()
		assert.Equal(t, 2, f[0]+f[3], "%v", f)
		for _, reply := range r.replies() {
			assert.True(t, strings.HasSuffix(reply, " again"), reply)
		}
	}
	s.EveryKill(t, check)
	if !testing.Short() {
		s.EveryPowerLoss(t, 1, 1, afterPowerLoss(check))
	}
}

// TestKilledHookOfTheStop kills the hook that acknowledges the prompt and delivers the
// next entry.
func TestKilledHookOfTheStop(t *testing.T) {
	trust(t)
	s := crash.Scenario{
		Setup: begun(func(c *standIn, p string) {
			c.start()
			c.submit(p)
			c.wrotePrompt(p)
			c.wroteReply("A done")
		}),
		Run: hookCommand("Stop", map[string]any{"last_assistant_message": "A done", "stop_hook_active": false}),
	}
	s.EveryKill(t, func(t *testing.T, c crash.Crash) {
		r := left(t, c)
		cl := r.client([]string{"--session-id", sessionIn(c.Dir)})
		cl.wroteSummary() // the client lives, and ends since no hook holds it
		r.goesOn(seen)
		replies, f := r.replies(), r.fates()
		assert.Equal(t, "A done", replies["do A"], "%v", replies)
		assert.Equal(t, 2, f[0]+f[3], "%v", f)
		if len(c.Promised) == 0 {
			assert.NotContains(t, replies, "B done")
		}
	})
}

// TestKilledSettle kills whoever settles: one more settling makes it one dead letter.
func TestKilledSettle(t *testing.T) {
	trust(t)
	s := crash.Scenario{
		Setup: begun(func(c *standIn, p string) {
			c.start()
			c.submit(p)
		}),
		Run: func(dir string) crash.Command { return crash.Command{Name: "settle", Args: []string{dir}} },
	}
	check := func(t *testing.T, c crash.Crash) {
		r := left(t, c)
		r.settle(Exit{})
		assert.Equal(t, []int{0, 1, 0, 1}, r.fates())
	}
	s.EveryKill(t, check)
	if !testing.Short() {
		s.EveryPowerLoss(t, 1, 1, afterPowerLoss(check))
	}
}
