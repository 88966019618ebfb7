package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// launchVariable names a heartbeat-launch to test instead of one that is built here.
const launchVariable = "HEARTBEAT_LAUNCH"

var buildLaunch = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(launchVariable); path != "" {
		return path, nil
	}
	stop, err := buildOnce()
	if err != nil {
		return "", err
	}
	if built == "" {
		return "", errors.New(launchVariable + " is not set, and " + binaryVariable + " is: name both")
	}
	return filepath.Join(filepath.Dir(stop), "heartbeat-launch"), nil
})

// launched starts the client interactively in a terminal that the launcher makes. The
// launcher itself has no terminal, and the variables of another session.
func (r *rig) launched(ctx context.Context, flags ...string) *started {
	r.t.Helper()
	if runtime.GOOS != "linux" {
		r.t.Skip("finding processes by their environment needs /proc")
	}
	launch, err := buildLaunch()
	require.NoError(r.t, err)
	args := append([]string{"--cwd", r.Project, "--exit-signal", r.signal, "--grace", "1m"}, flags...)
	args = append(args, "--", r.binary, "--settings", r.settings, prompt(1))
	return r.start(ctx, []string{NoRetries, "CI=1", "CLAUDECODE=1", "CLAUDE_CODE_CHILD_SESSION=1"}, "", launch, args...)
}

// sessionsGone waits until no client of the rig is left.
func (r *rig) sessionsGone(ctx context.Context) {
	r.t.Helper()
	r.until(ctx, "the session is gone", func() bool { return len(r.processes("--settings")) == 0 })
}

// A session in the launcher's terminal works through the inbox, writes its
// transcript, and ends with the launcher once nothing waits.
func TestLaunchedDrain(t *testing.T) {
	all := some(12)
	r := newRig(t, own).install().add(all...)
	ctx := within(t)
	_, stderr, status := r.launched(ctx).wait()
	assert.Zero(t, status, stderr)
	assert.Equal(t, "heartbeat-launch: CI is taken out of the command's environment, since it says that nobody is at the terminal (--env CI keeps it)\n", stderr)
	r.settled(answeredOnce(all...)...)
	assert.True(t, r.transcribed("[e12]"), "it took itself for another session's child")
	r.sessionsGone(ctx)
}

// However the launcher ends, the session ends too, and the next one finds the queue
// intact.
func TestLaunchedEnds(t *testing.T) {
	Find(t)
	limit := unhurried(t, 20*time.Second, clients) // the session gets to the second entry before
	for name, c := range map[string]struct {
		flags  []string
		end    func(*started) error
		status int
	}{
		"SIGTERM": {nil, func(s *started) error { return s.cmd.Process.Signal(syscall.SIGTERM) }, 143},
		"SIGKILL": {nil, func(s *started) error { return s.cmd.Process.Kill() }, -1},
		"timeout": {[]string{"--timeout", fmt.Sprint(limit.Seconds())}, func(*started) error { return nil }, 124},
	} {
		t.Run(name, func(t *testing.T) {
			all := some(3)
			r := newRig(t, first("[e2]", model.Hang())).install("--on-orphan", "retry").add(all...)
			ctx := minutes(t) // behind one that was killed the client may take long to start
			s := r.launched(ctx, c.flags...)
			r.asked(ctx, "[e2]", 1)
			require.NoError(t, c.end(s))
			_, stderr, status := s.wait()
			assert.Equal(t, c.status, status, stderr)
			r.sessionsGone(ctx)
			require.NotNil(t, r.flying())

			_, stderr, status = r.launched(ctx).wait()
			assert.Zero(t, status, stderr)
			r.settled(fatesAmid(all, 2, "retry", "")...)
		})
	}
}

// A session that sleeps in the launcher's terminal is woken there.
func TestLaunchedRewake(t *testing.T) {
	ctx := within(t)
	r := newRig(t, own).install("--rewake")
	s := r.launched(ctx, "--timeout", "0")
	all := some(2)
	for i := range all {
		all[i] = r.send(all[i])
		r.answered(ctx, i+1)
	}
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	_, stderr, status := s.wait()
	assert.Equal(t, 143, status, stderr)
	r.sessionsGone(ctx)
	r.settled(answeredOnce(all...)...)
}
