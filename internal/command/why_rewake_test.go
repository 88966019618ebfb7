package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
	"heartbeat/internal/see"
)

// TestStuckIdleStates is TestStuckStates for the wiring that wakes the session.
func TestStuckIdleStates(t *testing.T) {
	const rateLimit = "rate_limit"
	for _, c := range []struct {
		name    string
		provoke func(w *world)
		state   see.State
		why     string
	}{
		{"idle", func(w *world) { w.idle("Stop") },
			see.NoInbox, "<path> is not there yet: the first entry creates it; session s1 is idle, and the next entry wakes it"},
		{"idle after an answer", func(w *world) {
			w.queue("one")
			w.stop("ready")
			w.answer()
			w.idle("Stop", "prompt_id", "p2")
		}, see.Empty, "empty: nothing is queued, and the last entry was answered at <time>; session s1 is idle, and the next entry wakes it"},
		{"who was to wake it was killed", func(w *world) {
			w.event("SessionStart", "source", "startup")
			w.idle("Stop")()
			w.queue("one")
		}, see.NoWaker, "1 entry waits, and the process that was to wake session s1 (process <n>) is gone: the session asks after its next turn, if it still runs, so type something there, or start another"},
		{"who is to wake it is stopped", func(w *world) {
			w.idle("Stop")
			w.freeze()
			w.queue("one", "two")
		}, see.NoWaker, "2 entries wait, and process <n>, which is to wake session s1, is stopped, by SIGSTOP or Ctrl-Z: kill -CONT <n> has it go on"},
		{"woken", func(w *world) { w.woken() },
			see.Waking, "waiting for session s1 to take up the entry <entry>, handed over at <time> <ago> to wake it, attempt 1: if it never does, the session's next turn or end decides about the entry"},
		{"woken, and killed", func(w *world) { w.woken()() },
			see.Orphaned, "the entry <entry>, delivered at <time>, was in flight when session s1 died: the next session, or heartbeat recover, decides about it"},
		{"taken up", func(w *world) { w.takenUp() },
			see.Answering, "waiting for an answer to the entry <entry> since <time> <ago>, attempt 1: session s1 runs"},
		{"taken up, and a person is asked for", func(w *world) {
			w.takenUp()
			w.event("Notification", "notification_type", "permission_prompt", "message", "Claude needs your permission")
		}, see.Person, "session s1 waits for a person: permission_prompt: Claude needs your permission (since <time>, and no turn of it has ended since): unless somebody has answered, the entry <entry>, in flight since <time> <ago>, waits behind that"},
		{"entries wait, and a person is asked for", func(w *world) {
			w.event("SessionStart", "source", "startup")
			w.queue("one")
			w.event("Notification", "notification_type", "agent_needs_input")
		}, see.Person, "session s1 waits for a person: agent_needs_input (since <time>, and no turn of it has ended since): unless somebody has answered, 1 entry waits behind that"},
		{"backing off", func(w *world) {
			w.takenUp()
			w.idle("StopFailure", "prompt_id", "p2", "error", rateLimit, "last_assistant_message", "come\nback later")
		}, see.BackingOff, "backing off until <time> (rate_limit: come back later): nothing is delivered until then, or until heartbeat resume; after that, the entry <entry> waits to be delivered again (attempt 1), and session s1 takes what is next within moments: process <n> waits in the background to wake it"},
		{"backing off until the error's time", func(w *world) {
			w.idle("StopFailure", "error", rateLimit, "last_assistant_message", "retry after 300 seconds")
		}, see.BackingOff, "backing off until <time> (rate_limit: retry after 300 seconds), just after the time that the error named: an entry that comes waits until then, or until heartbeat resume"},
		{"backing off, and nobody waits", func(w *world) {
			kill := w.takenUp()
			w.idle("StopFailure", "prompt_id", "p2", "error", rateLimit)()
			kill()
		}, see.BackingOff, "backing off until <time> (rate_limit): nothing is delivered until then, or until heartbeat resume; after that, the entry <entry> waits to be delivered again (attempt 1), and no session runs: start one; the last one, s1, is gone (process <n> has ended)"},
		{"backing off no more", func(w *world) {
			w.event("SessionStart", "source", "startup")
			w.idle("StopFailure", "error", rateLimit)()
			w.verb("resume")
			w.queue("one")
		}, see.NoWaker, "1 entry waits, and the process that was to wake session s1 (process <n>) is gone: the session asks after its next turn, if it still runs, so type something there, or start another"},
		{"only a person can help", func(w *world) {
			w.takenUp()
			w.idle("StopFailure", "prompt_id", "p2", "error", "authentication_failed", "last_assistant_message", "Please run /login")
		}, see.Paused, "delivery is paused since <time> (authentication_failed: Please run /login): nothing is delivered until heartbeat resume"},
		{"under -p", func(w *world) {
			w.Setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
			w.queue("one")
			require.Equal(w, cli.ExitError, w.hook([]string{"--rewake"}, "Stop", nil))
		}, see.SessionDown, "1 entry waits, and session s1 could not be woken at <time>, since it ends with its turn (under -p, or driven by a program): start an interactive one, or wire the hook without --rewake"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.Setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
			w.kill = w.client()
			c.provoke(w)
			state, sentence := w.says()
			require.Regexp(t, w.sentence(c.why), sentence)
			require.Equal(t, string(c.state), state)
		})
	}
}

// waker starts the hook in the background.
func (w *world) waker(name string, members []string, stderr io.Writer) *exec.Cmd {
	cmd := exec.Command("heartbeat-stop", "--rewake", "--inbox", w.inbox)
	cmd.Stderr = stderr
	cmd.Stdin = w.input(name, members)
	require.NoError(w, cmd.Start())
	return cmd
}

// idle starts a hook that waits for an entry, and returns what kills it.
func (w *world) idle(name string, members ...string) (kill func()) {
	cmd := w.waker(name, members, nil)
	gone := false
	kill = func() {
		if !gone {
			gone = true
			require.NoError(w, cmd.Process.Kill())
			require.Error(w, cmd.Wait())
		}
	}
	w.Cleanup(kill)
	require.Eventually(w, func() bool { return w.waiter() == cmd.Process.Pid }, 5*time.Minute, 5*time.Millisecond)
	return kill
}

// waiter is the process that the inbox knows to wait.
func (w *world) waiter() int {
	box, err := inbox.Open(w.inbox, inbox.Options{})
	require.NoError(w, err)
	v, err := box.View()
	require.NoError(w, err)
	defer func() { require.NoError(w, v.Close()) }()
	who, err := v.Waiter()
	require.NoError(w, err)
	if who == nil {
		return 0
	}
	return who.PID
}

// freeze stops the process that waits, while it does nothing.
func (w *world) freeze() {
	pid := w.waiter()
	box, err := inbox.Open(w.inbox, inbox.Options{})
	require.NoError(w, err)
	require.Eventually(w, func() bool {
		require.NoError(w, syscall.Kill(pid, syscall.SIGSTOP))
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		require.NoError(w, err)
		if bytes.Contains(stat, []byte(") T ")) && box.Lock() == 0 {
			return true
		}
		require.NoError(w, syscall.Kill(pid, syscall.SIGCONT))
		return false
	}, 5*time.Minute, time.Millisecond)
}

// woken has a session be given an entry while it is idle, and returns what kills
// its client.
func (w *world) woken() (kill func()) {
	w.event("SessionStart", "source", "startup")
	w.queue("one")
	var exit *exec.ExitError
	said := new(bytes.Buffer)
	require.ErrorAs(w, w.waker("Stop", nil, said).Wait(), &exit)
	require.Equal(w, hook.ExitWake, exit.ExitCode())
	w.wokenWith = said.String()
	return w.kill
}

// takenUp has the session announce that entry as its next prompt.
func (w *world) takenUp() (kill func()) {
	kill = w.woken()
	require.Equal(w, cli.ExitOK, w.hook([]string{"--rewake"}, "UserPromptSubmit", []string{
		"prompt_id", "p2", "prompt", "Stop hook blocking error from command \"heartbeat\": " + w.wokenWith,
	}))
	return kill
}
