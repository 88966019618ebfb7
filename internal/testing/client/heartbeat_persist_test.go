package client

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/script"
)

// hooks returns the pids of the hooks that run on the rig's inbox.
func (r *rig) hooks() []int {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	var all []int
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		args := strings.Split(string(raw), "\x00")
		if err != nil || args[0] != r.stop || !strings.Contains(string(raw), "--inbox\x00"+r.inbox+"\x00") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// waiting waits until n hooks wait for an entry, and returns their process ids.
func (r *rig) waiting(ctx context.Context, n int) (pids []int) {
	r.t.Helper()
	r.until(ctx, "a hook waits", func() bool {
		pids = nil
		for _, pid := range r.hooks() {
			if script.Watches(pid) {
				pids = append(pids, pid)
			}
		}
		return len(pids) == n
	})
	return pids
}

func (r *rig) hooksGone(ctx context.Context) {
	r.t.Helper()
	r.until(ctx, "no hook is left", func() bool { return len(r.hooks()) == 0 })
}

// persistent is a rig whose hook waits for entries.
func persistent(t *testing.T, idle string) *rig {
	t.Helper()
	r := newRig(t, own)
	if runtime.GOOS != "linux" {
		t.Skip("seeing a hook wait needs /proc")
	}
	return r.install("--mode", "persist", "--idle-interval", idle)
}

// persisting is a session whose hook waits for the first entry.
func persisting(ctx context.Context, t *testing.T, idle string) (*rig, *Session) {
	t.Helper()
	r := persistent(t, idle)
	return r, r.attended(ctx, r.options())
}

// A session waits in its hook, and gets every entry, however it is written.
func TestHeartbeatPersist(t *testing.T) {
	ctx := within(t)
	r, s := persisting(ctx, t, "1h")
	all := some(6)
	r.waiting(ctx, 1)
	r.echo(all[0])
	r.asked(ctx, all[0].tag, 1)
	r.waiting(ctx, 1)
	all[1] = r.send(all[1])
	r.asked(ctx, all[1].tag, 1)
	r.waiting(ctx, 1)
	r.add(all[2:]...)
	for _, e := range all[2:] {
		r.asked(ctx, e.tag, 1)
	}
	r.waiting(ctx, 1)
	r.settled(answeredOnce(all...)...)
	assert.Equal(t, 7, r.turns(), "no idle tick")
	assert.NoFileExists(t, r.signal)
	r.quit(ctx, s)
	r.hooksGone(ctx)
}

// A session with nothing to do gets an idle tick. Its answer belongs to no entry.
func TestHeartbeatIdleTick(t *testing.T) {
	const tick = "--- IDLE TICK ---"
	ctx := within(t)
	r, s := persisting(ctx, t, "0.3")
	for n := 2; n <= 4; n++ {
		request, err := r.Model.WaitRequests(ctx, n)
		require.NoError(t, err)
		require.Contains(t, request.UserText, tick)
	}
	assert.Empty(t, r.results())
	all := some(2)
	r.add(all...)
	r.asked(ctx, all[1].tag, 1)
	r.until(ctx, "both are answered", func() bool { return len(r.results()) == 2 })
	r.quit(ctx, s)
	r.hooksGone(ctx)
	r.settled(answeredOnce(all...)...)
	assert.GreaterOrEqual(t, r.arrivals(tick), 3)
}

// ends are the ways in which a session goes while its hook waits.
var ends = map[string]func(context.Context, *testing.T, *rig, *Session){
	"SIGTERM": func(ctx context.Context, _ *testing.T, r *rig, s *Session) { r.quit(ctx, s) },
	"SIGKILL": func(ctx context.Context, t *testing.T, r *rig, s *Session) {
		require.NoError(t, s.Signal(syscall.SIGKILL))
		_, err := s.Wait(ctx)
		require.NoError(t, err)
	},
	"SIGHUP": func(ctx context.Context, t *testing.T, r *rig, s *Session) {
		require.NoError(t, s.Signal(syscall.SIGHUP))
		_, err := s.Wait(ctx)
		require.NoError(t, err)
	},
}

// A hook does not outlive its session, and takes nothing that arrives after it.
func TestHeartbeatPersistEnds(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			r, s := persisting(ctx, t, "1h")
			all := some(3)
			r.add(all[0])
			r.asked(ctx, all[0].tag, 1)
			r.until(ctx, "it is answered", func() bool { return len(r.results()) == 1 })
			r.waiting(ctx, 1)
			end(ctx, t, r, s)
			r.add(all[1:]...)
			r.hooksGone(ctx)
			r.logged(append(answeredOnce(all[0]), fate{entry: all[1]}, fate{entry: all[2]})...)
			assert.Nil(t, r.flying(), "a ghost took it")

			drained := newSettings(r)
			r.drain(ctx, prompt(2), drained)
			r.settled(answeredOnce(all...)...)
		})
	}
}

// A person interrupts the wait and says something. The waiting hook has taken nothing,
// and the next one continues.
func TestHeartbeatPersistInterrupted(t *testing.T) {
	ctx := within(t)
	r, s := persisting(ctx, t, "1h")
	r.waiting(ctx, 1)
	require.NoError(t, s.Esc())
	r.hooksGone(ctx)
	all := some(2)
	r.add(all[0])
	assert.Nil(t, r.flying())
	require.NoError(t, s.Submit(ctx, prompt(2)))
	r.asked(ctx, all[0].tag, 1)
	r.waiting(ctx, 1)
	r.add(all[1])
	r.asked(ctx, all[1].tag, 1)
	r.waiting(ctx, 1)
	r.settled(answeredOnce(all...)...)
	r.quit(ctx, s)
}

// The client ends a hook that waits longer than its timeout, and approves the stop. The
// hook has taken nothing.
func TestHeartbeatPersistTimeout(t *testing.T) {
	ctx := within(t)
	r := persistent(t, "1h")
	r.edit(func(settings map[string]any) {
		stop := settings["hooks"].(map[string]any)["Stop"].([]any)[0].(map[string]any)
		stop["hooks"].([]any)[0].(map[string]any)["timeout"] = unhurried(t, time.Second, commands).Seconds() // it is seen to wait before
	})
	r.attended(ctx, r.options())
	r.waiting(ctx, 1)
	r.hooksGone(ctx)
	all := some(1)
	r.add(all...)
	assert.Nil(t, r.flying())
	assert.Empty(t, r.results())
	r.drain(ctx, prompt(2), newSettings(r))
	r.settled(answeredOnce(all...)...)
}

// newSettings are those of a launcher that drains in print mode.
func newSettings(r *rig) Options {
	path := r.path("drain.json")
	r.installIn(path)
	return Options{Settings: path}
}

// echo appends an entry from a shell.
func (r *rig) echo(e entry) {
	r.t.Helper()
	cmd := exec.Command("sh", "-c", `printf '%s\n' "$1" >>"$2"`, "sh", e.line, r.inbox)
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "%s", out)
	r.entries = append(r.entries, e)
}

// A hook of the project refuses the prompt that an entry is. The session that sits at its prompt is ended, the policy
// decides about that entry, and the next one is worked on.
func TestManagedPersistRefused(t *testing.T) {
	ctx := minutes(t)
	all := some(2)
	r := newRig(t, own).add(all...)
	r.WriteProjectSettings(map[string]any{"hooks": map[string]any{"UserPromptSubmit": []any{map[string]any{"hooks": []any{
		map[string]any{"type": "command", "command": "! grep -q '\\[e1\\]' || { echo no >&2; exit 2; }"},
	}}}}})
	m := r.managing(ctx, "--mode", "persist", "--start-timeout", unhurried(t, 20*time.Second, clients).String())
	r.answered(ctx, 1)
	require.NoError(t, m.cmd.Process.Signal(syscall.SIGTERM))
	w, _ := m.wait()
	assert.Equal(t, worked{Reason: "stopped", Detail: w.Detail, Answered: 1, DeadLettered: 1, Sessions: 2, Restarts: 1}, w)
	assert.Zero(t, r.arrivals("[e1]"))
	fates := fatesAmid(all, 1, "deadletter", "orphaned")
	fates[0].arrivals = 0
	r.settled(fates...)
}

// A slow Stop hook of the project runs for longer than --start-timeout: the entry is not one that nobody works on.
func TestManagedPersistBesideASlowStopHook(t *testing.T) {
	ctx := minutes(t)
	all, start := some(1), unhurried(t, 8*time.Second, clients)
	r := newRig(t, own).add(all...)
	r.WriteProjectSettings(map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{"hooks": []any{
		map[string]any{"type": "command", "command": fmt.Sprintf("sleep %.0f", (2 * start).Seconds()), "timeout": 600},
	}}}}})
	m := r.managing(ctx, "--mode", "persist", "--start-timeout", start.String())
	r.answered(ctx, 1)
	require.NoError(t, m.cmd.Process.Signal(syscall.SIGTERM))
	w, _ := m.wait()
	assert.Equal(t, worked{Reason: "stopped", Detail: w.Detail, Answered: 1, Sessions: 1}, w)
	r.settled(answeredOnce(all...)...)
}
