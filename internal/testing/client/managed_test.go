package client

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
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
	"heartbeat/internal/testing/model"
)

// worked is what --report says.
type worked struct {
	Exit                                                            int
	Reason, Detail                                                  string
	Answered, Redelivered, DeadLettered, Queued, Sessions, Restarts int
}

func (w *worked) UnmarshalJSON(text []byte) error {
	var raw struct {
		Exit                                    int
		Reason, Detail                          string
		Answered, Redelivered, Queued, Sessions int
		Restarts                                int
		DeadLettered                            int `json:"dead_lettered"`
	}
	err := json.Unmarshal(text, &raw)
	*w = worked{raw.Exit, raw.Reason, raw.Detail, raw.Answered, raw.Redelivered, raw.DeadLettered, raw.Queued, raw.Sessions, raw.Restarts}
	return err
}

// managed is a launcher that manages sessions for the inbox.
type managed struct {
	*started
	r *rig
}

// managing starts a launcher on the rig's inbox, without a terminal and with the variables
// of another session.
func (r *rig) managing(ctx context.Context, flags ...string) *managed {
	r.t.Helper()
	return r.managingWith(ctx, flags)
}

// managingWith is managing with arguments of the client.
func (r *rig) managingWith(ctx context.Context, flags []string, arguments ...string) *managed {
	r.t.Helper()
	launch, err := buildLaunch()
	require.NoError(r.t, err)
	args := slices.Concat(r.workOn(), flags, []string{"--", r.binary}, arguments, []string{prompt(1)})
	return &managed{r.start(ctx, []string{NoRetries, "CI=1", "CLAUDECODE=1", "CLAUDE_CODE_CHILD_SESSION=1"}, "", launch, args...), r}
}

// workOn are the flags of a launcher on the rig's inbox. A client may take long to start and to
// end: one that is not waited for has a successor, or has not written its last words.
func (r *rig) workOn() []string {
	return []string{
		"--inbox", r.inbox, "--cwd", r.Project, "--hook", r.stop, "--report", r.path("report.json"), "--start-timeout", "5m", "--grace", "1m",
	}
}

// wait returns the report, and the lines of the log without their times.
func (m *managed) wait() (w worked, log []string) {
	m.r.t.Helper()
	stdout, stderr, status := m.started.wait()
	m.r.t.Log(stderr)
	text, err := os.ReadFile(m.r.path("report.json"))
	require.NoError(m.r.t, err, stderr)
	require.NoError(m.r.t, json.Unmarshal(text, &w))
	assert.Equal(m.r.t, w.Exit, status, stderr)
	for line := range strings.Lines(stdout) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		log = append(log, text)
	}
	return w, log
}

// killClient kills the client that works on the inbox.
func (r *rig) killClient() {
	r.t.Helper()
	box, err := inbox.Open(r.inbox, inbox.Options{})
	require.NoError(r.t, err)
	v, err := box.View()
	require.NoError(r.t, err)
	defer v.Close()
	sessions, err := v.Sessions()
	require.NoError(r.t, err)
	for _, s := range sessions {
		if s.EndedAt == nil {
			require.NoError(r.t, syscall.Kill(s.PID, syscall.SIGKILL))
		}
	}
}

// One short command drains an inbox, past the cap of blocks in a row, leaves the
// project's settings alone, and no process.
func TestManagedDrain(t *testing.T) {
	all := some(12)
	r := newRig(t, own).add(all...)
	ctx := within(t)
	m := r.managing(ctx)
	w, log := m.wait()
	assert.Equal(t, worked{Reason: "drained", Answered: 12, Sessions: 1}, w)
	assert.Len(t, log, 3+2*12, "%q", log)
	r.settled(answeredOnce(all...)...)
	assert.True(t, r.transcribed("[e12]"), "it took itself for another session's child")
	r.sessionsGone(ctx)
	assert.NoFileExists(t, r.projectSettings())
	assert.NoFileExists(t, r.path(".exit-signal"))

	// There is nothing to do: no session, no request.
	before := r.turns()
	w, _ = r.managing(ctx).wait()
	assert.Equal(t, worked{Reason: "drained"}, w)
	assert.Equal(t, before, r.turns())
}

// If the project has already wired the hook, no entry goes to both.
func TestManagedWiredTwice(t *testing.T) {
	for _, wiring := range [][]string{nil, {"--rewake"}} {
		t.Run(strings.Join(wiring, ""), func(t *testing.T) {
			all := some(4)
			r := newRig(t, own).add(all...)
			r.installIn(r.projectSettings(), wiring...)
			w, _ := r.managing(within(t)).wait()
			assert.Equal(t, worked{Reason: "drained", Answered: 4, Sessions: 1}, w)
			r.settled(answeredOnce(all...)...)
		})
	}
}

// A hook of another inbox, wired in the project, delivers nothing into the launcher's
// session.
func TestManagedOtherInbox(t *testing.T) {
	all := some(3)
	r := newRig(t, own).add(all...)
	other := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(other, []byte("for another session [o1]\n"), 0o600))
	require.NoError(t, exec.Command(r.heartbeat(), "install", "--inbox", other, "--settings", r.projectSettings()).Run())
	w, _ := r.managing(within(t)).wait()
	assert.Equal(t, worked{Reason: "drained", Answered: 3, Sessions: 1}, w)
	r.settled(answeredOnce(all...)...)
	assert.Zero(t, r.arrivals("for another session [o1]"))
}

// A folder that nobody has trusted is named, long before the time is over.
func TestManagedUntrusted(t *testing.T) {
	all := some(2)
	r := newRig(t, own).add(all...)
	r.distrust()
	ctx := within(t)
	m := r.managing(ctx)
	w, _ := m.wait()
	assert.Equal(t, 78, w.Exit)
	assert.Equal(t, "set-up", w.Reason)
	assert.Contains(t, w.Detail, "the folder is not trusted")
	assert.Contains(t, w.Detail, "start claude in this folder once, and answer the dialog yourself")
	assert.Equal(t, 2, w.Queued)
	r.sessionsGone(ctx)
}

// Where somebody has disabled hooks no session is started.
func TestManagedHooksDisabled(t *testing.T) {
	r := newRig(t, own).add(some(2)...)
	r.WriteProjectSettings(map[string]any{"disableAllHooks": true})
	w, _ := r.managing(within(t)).wait()
	assert.Equal(t, 78, w.Exit)
	assert.Contains(t, w.Detail, "hooks are disabled by disableAllHooks in "+r.projectSettings())
}

// After a client that is killed during an entry comes another one, and the policy
// decides about the entry.
func TestManagedRestarts(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			all := some(3)
			r := newRig(t, first("[e2]", model.Hang())).add(all...)
			ctx := minutes(t)
			m := r.managing(ctx, "--on-orphan", policy)
			r.asked(ctx, "[e2]", 1)
			r.killClient()
			w, log := m.wait()
			fates := fatesAmid(all, 2, policy, "orphaned")
			r.settled(fates...)
			want := map[string]worked{
				"deadletter": {Exit: 3, Answered: 2, DeadLettered: 1},
				"retry":      {Answered: 3, Redelivered: 1},
				"drop":       {Answered: 2},
			}[policy]
			want.Reason, want.Sessions, want.Restarts = "drained", 2, 1
			assert.Equal(t, want, w)
			assert.Contains(t, log, "the session was ended by signal 9 (killed)")
			r.sessionsGone(ctx)
		})
	}
}

// A launcher that is killed leaves no process, and the next one recovers.
func TestManagedLauncherKilled(t *testing.T) {
	all := some(3)
	r := newRig(t, first("[e2]", model.Hang())).add(all...)
	ctx := minutes(t)
	m := r.managing(ctx, "--on-orphan", "retry")
	r.asked(ctx, "[e2]", 1)
	require.NoError(t, m.cmd.Process.Kill())
	_ = m.cmd.Wait() // it was killed
	r.sessionsGone(ctx)
	w, _ := r.managing(ctx, "--on-orphan", "retry").wait()
	assert.Equal(t, worked{Reason: "drained", Answered: 2, Redelivered: 1, Sessions: 1}, w)
	r.settled(fatesAmid(all, 2, "retry", "")...)
}

// A session that stays up is woken by each entry, and ends with its launcher.
func TestManagedPersist(t *testing.T) {
	ctx := within(t)
	r := newRig(t, own)
	m := r.managing(ctx, "--mode", "persist")
	all := some(2)
	for i := range all {
		all[i] = r.send(all[i])
		r.answered(ctx, i+1)
	}
	require.NoError(t, m.cmd.Process.Signal(syscall.SIGTERM))
	w, _ := m.wait()
	assert.Equal(t, 0, w.Exit)
	assert.Equal(t, 2, w.Answered)
	r.sessionsGone(ctx)
	r.settled(answeredOnce(all...)...)
}

// Where the hook is killed that waits to wake the session, another session is
// started once an entry waits, and does the work.
func TestManagedPersistWaiterKilled(t *testing.T) {
	for name, when := range map[string]struct{ sendFirst bool }{"idle": {false}, "stopped, with an entry waiting": {true}} {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t)
			r := newRig(t, own)
			m := r.managing(ctx, "--mode", "persist")
			all := some(2)
			all[0] = r.send(all[0])
			r.answered(ctx, 1)
			r.until(ctx, "a hook waits", func() bool { return r.waiter() != nil })
			pid := r.waiter().PID
			if when.sendFirst {
				r.stopBetween(ctx, pid)
				all[1] = r.send(all[1])
			}
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			if !when.sendFirst {
				all[1] = r.send(all[1])
			}
			r.answered(ctx, 2)
			require.NoError(t, m.cmd.Process.Signal(syscall.SIGTERM))
			w, log := m.wait()
			assert.Equal(t, 2, w.Sessions)
			assert.Contains(t, strings.Join(log, "\n"), fmt.Sprintf("an entry waits, and the hook that would wake it is gone (process %d)", pid))
			r.sessionsGone(ctx)
			r.settled(answeredOnce(all...)...)
		})
	}
}

// stopBetween stops a process while it does not hold the inbox's lock, which it would keep.
func (r *rig) stopBetween(ctx context.Context, pid int) {
	r.t.Helper()
	box, err := inbox.Open(r.inbox, inbox.Options{})
	require.NoError(r.t, err)
	r.until(ctx, "the process stands still without the lock", func() bool {
		require.NoError(r.t, syscall.Kill(pid, syscall.SIGSTOP))
		for !isStopped(r.t, pid) {
			time.Sleep(poll)
		}
		if box.Lock() != pid {
			return true
		}
		require.NoError(r.t, syscall.Kill(pid, syscall.SIGCONT))
		return false
	})
}

// isStopped reports whether a signal has stopped all of a process.
func isStopped(t testing.TB, pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	return strings.Contains(string(status), "\nState:\tT")
}

// waiter is the hook that waits to wake the session, nil for none.
func (r *rig) waiter() *inbox.Waiter {
	r.t.Helper()
	box, err := inbox.Open(r.inbox, inbox.Options{})
	require.NoError(r.t, err)
	v, err := box.View()
	require.NoError(r.t, err)
	defer v.Close()
	w, err := v.Waiter()
	require.NoError(r.t, err)
	return w
}

// Each entry gets a session of its own.
func TestManagedMaxEntries(t *testing.T) {
	all := some(3)
	r := newRig(t, own).add(all...)
	w, _ := r.managing(minutes(t), "--max-entries", "1").wait()
	assert.Equal(t, worked{Reason: "drained", Answered: 3, Sessions: 3}, w)
	r.settled(answeredOnce(all...)...)
	sessions := map[string]bool{}
	for _, l := range r.results() {
		sessions[l.SessionID] = true
	}
	assert.Len(t, sessions, 3)
}

// While the model's API fails for every turn, nothing is lost, and the launcher
// gives up in good time.
func TestManagedStorm(t *testing.T) {
	all := some(3)
	r := newRig(t, func(string, int) model.Reply { return model.Overloaded() }).add(all...)
	ctx := minutes(t)
	m := r.managing(ctx, "--max-restarts", "1")
	w, log := m.wait()
	assert.Equal(t, 75, w.Exit)
	assert.Equal(t, "restarts", w.Reason)
	assert.Contains(t, w.Detail, "server_error")
	assert.Equal(t, 3, w.Queued, "%q", log)
	assert.Zero(t, w.DeadLettered)
	r.sessionsGone(ctx)
}

// A limit whose end is known is waited for where that was asked for, and the entry that met
// it is answered then. From cron it ends the work at once.
func TestManagedPatience(t *testing.T) {
	all := some(3)
	r := newRig(t, first("[e2]", model.Error(429, "rate_limit_error", "This account is limited, try again in 3 hours"))).add(all...)
	ctx := minutes(t)
	m := r.managing(ctx, "--patience", "10h", "--log", r.path("patient.log"))
	r.until(ctx, "the launcher waits", func() bool {
		text, _ := os.ReadFile(r.path("patient.log")) // there is none at first
		return strings.Contains(string(text), "it waits until ")
	})
	assert.Equal(t, 1, len(r.results()))
	r.sessionsGone(ctx)
	r.run("", "resume")
	w, log := m.wait()
	assert.Equal(t, worked{Reason: "drained", Answered: 3, Redelivered: 1, Sessions: 2, Restarts: 1}, w)
	assert.Regexp(t, `it waits until 20\d\d-.*, then the limit is over: rate_limit: .*try again in 3 hours`, strings.Join(log, "\n"))
	fates := answeredOnce(all...)
	fates[1].arrivals = 2
	r.settled(fates...)
}

// From --until on no further entry is begun, and the one in flight is answered.
func TestManagedUntil(t *testing.T) {
	Find(t)
	until := time.Now().Add(unhurried(t, 40*time.Second, clients)).Truncate(time.Second)
	r := newRig(t, func(tag string, nth int) model.Reply {
		if tag == "[e2]" {
			time.Sleep(time.Until(until) + time.Second)
		}
		return own(tag, nth)
	}).add(some(3)...)
	w, _ := r.managing(minutes(t), "--until", until.Format(time.RFC3339)).wait()
	assert.Equal(t, worked{Exit: 75, Reason: "work left", Answered: 2, Queued: 1, Sessions: 1}, worked{w.Exit, w.Reason, "", w.Answered, w.Redelivered, w.DeadLettered, w.Queued, w.Sessions, w.Restarts})
	assert.Contains(t, w.Detail, "the time was over (--until ")
	r.sessionsGone(within(t))
}

// A key that is not accepted pauses the inbox, and has a status of its own, also
// the next time.
func TestManagedAuthentication(t *testing.T) {
	r := newRig(t, func(tag string, nth int) model.Reply {
		if tag == "[e1]" {
			return model.Error(401, "authentication_error", "invalid x-api-key")
		}
		return own(tag, nth)
	}).add(some(2)...)
	ctx := minutes(t)
	for range 2 {
		w, _ := r.managing(ctx).wait()
		assert.Equal(t, 78, w.Exit)
		assert.Equal(t, "authentication", w.Reason)
		assert.Equal(t, 2, w.Queued)
	}
}

// A session that asks for a permission where nobody is there is ended.
func TestManagedAsks(t *testing.T) {
	r := newRig(t, first("[e1]", model.Tool("Bash", map[string]any{"command": "touch " + filepath.Join(t.TempDir(), "made")}))).add(some(2)...)
	ctx := minutes(t)
	w, log := r.managing(ctx).wait()
	assert.Equal(t, worked{Exit: 3, Reason: "drained", Answered: 1, DeadLettered: 1, Sessions: 2, Restarts: 1}, w)
	assert.Contains(t, strings.Join(log, "\n"), "it waits for a person, and nobody is there")
}

// The conversation of a session that was killed goes on.
func TestManagedResume(t *testing.T) {
	all := some(3)
	r := newRig(t, first("[e2]", model.Hang())).add(all...)
	ctx := minutes(t)
	m := r.managing(ctx, "--on-orphan", "retry", "--resume")
	r.asked(ctx, "[e2]", 1)
	r.killClient()
	w, _ := m.wait()
	assert.Equal(t, worked{Reason: "drained", Answered: 3, Redelivered: 1, Sessions: 2, Restarts: 1}, w)
	sessions := map[string]bool{}
	for _, l := range r.results() {
		sessions[l.SessionID] = true
	}
	assert.Len(t, sessions, 1)
}

// What only a person can mend has a status of its own, whatever the client calls it,
// also for the runs that only find it so.
func TestManagedRefused(t *testing.T) {
	for name, reply := range map[string]model.Reply{
		"402": model.Error(402, "api_error", "Payment required"),
		"404": model.Error(404, "not_found_error", "model: none"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(string, int) model.Reply { return reply }).add(some(1)...)
			ctx := minutes(t)
			for range 2 {
				w, _ := r.managing(ctx).wait()
				assert.Equal(t, 78, w.Exit)
				assert.Equal(t, "refused", w.Reason)
				assert.Equal(t, 1, w.Queued)
			}
		})
	}
}

// An error that the client retries by itself, for minutes, is reported at once.
func TestManagedRetryIsTold(t *testing.T) {
	r := newRig(t, func(string, int) model.Reply {
		return model.Error(401, "authentication_error", "invalid x-api-key")
	}).add(some(1)...)
	ctx := minutes(t)
	launch, err := buildLaunch()
	require.NoError(t, err)
	log := r.path("agent.log")
	s := r.start(ctx, nil, "", launch, append(r.workOn(), "--log", log, "--drain-timeout", "0", "--", r.binary, prompt(1))...)
	r.until(ctx, "the error is told", func() bool {
		text, _ := os.ReadFile(log) // it may come yet
		return strings.Contains(string(text), "the model's API says 401 invalid x-api-key, try ")
	})
	r.until(ctx, "status names it", func() bool {
		return strings.Contains(r.status().Why, ": the model's API says 401 invalid x-api-key, try ")
	})
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	_, _, status := s.wait()
	assert.Equal(t, 0, status)
	r.sessionsGone(ctx)
}
