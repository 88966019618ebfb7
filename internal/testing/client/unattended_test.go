package client

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const launchers = "../../../scripts/launchers/"

// A run from cron answers what waits, with nothing installed in the project, and
// has nothing to mail. One that finds nothing asks nobody.
func TestUnattendedCron(t *testing.T) {
	ctx := within(t)
	all := some(3)
	r := newRig(t, own).add(all...)
	for range 2 {
		stdout, stderr, status := r.start(ctx, []string{r.onPath(), NoRetries}, "", launchers+"cron.sh",
			"--inbox", r.inbox, "--cwd", r.Project, "--start-timeout", "5m", "--grace", "1m", "--", "claude", prompt(1)).wait()
		assert.Zero(t, status, stdout)
		assert.Empty(t, stdout)
		assert.Empty(t, stderr)
		assert.Equal(t, 4, r.turns())
	}
	r.settled(answeredOnce(all...)...)
	assert.NoFileExists(t, r.projectSettings())
	r.sessionsGone(ctx)
}

// manager is what a service tells its manager, in the order that it does.
type manager struct {
	socket string
	said   chan string
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "hb") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // best effort: a temporary folder
	m := &manager{filepath.Join(dir, "notify"), make(chan string, 1000)}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.socket, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // it ends the loop
	go func() {
		for buf := make([]byte, 4096); ; {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			for line := range strings.Lines(string(buf[:n])) {
				m.said <- strings.TrimSuffix(line, "\n")
			}
		}
	}()
	return m
}

// told waits for a line that begins like this, and returns it.
func (m *manager) told(ctx context.Context, t *testing.T, prefix string) string {
	t.Helper()
	var all []string
	for {
		select {
		case line := <-m.said:
			if all = append(all, line); strings.HasPrefix(line, prefix) {
				return line
			}
		case <-ctx.Done():
			require.FailNow(t, "the service manager was never told "+prefix, "%q", all)
		}
	}
}

// execStart is a unit's command line as a shell would have it: what systemd and a
// shell both expand stays.
func execStart(t *testing.T, unit string, replace ...string) string {
	t.Helper()
	raw, err := os.ReadFile(launchers + "systemd/" + unit)
	require.NoError(t, err)
	_, line, found := strings.Cut(string(raw), "\nExecStart=")
	require.True(t, found, unit)
	line, _, _ = strings.Cut(line, "\n")
	return "exec " + strings.NewReplacer(replace...).Replace(line)
}

// service starts a unit's command as systemd does.
func (r *rig) service(ctx context.Context, unit string, m *manager) *started {
	r.t.Helper()
	launch, err := buildLaunch()
	require.NoError(r.t, err)
	line := execStart(r.t, unit, "/usr/local/bin/heartbeat-launch", launch, "/var/lib/heartbeat/%i/work/inbox.jsonl", r.inbox)
	require.NotContains(r.t, line, "%")
	return r.start(ctx, []string{
		r.onPath(), NoRetries, "PROJECT=" + r.Project, "LAUNCH_FLAGS=--grace 1m --start-timeout 5m",
		"NOTIFY_SOCKET=" + m.socket, "WATCHDOG_USEC=2000000",
	}, "", "sh", "-c", line)
}

// The supervisor's service is ready once its session is up, says how it is doing,
// and that it is alive while the session idles. Entries wake the session, and the
// stop is clean.
func TestUnattendedSupervisor(t *testing.T) {
	ctx := minutes(t)
	r := newRig(t, own)
	m := newManager(t)
	s := r.service(ctx, "heartbeat-supervisor@.service", m)
	m.told(ctx, t, "READY=1")
	all := some(2)
	for i := range all {
		all[i] = r.send(all[i])
		r.answered(ctx, i+1)
		m.told(ctx, t, "STATUS=")
	}
	m.told(ctx, t, "WATCHDOG=1")
	m.told(ctx, t, "WATCHDOG=1")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	stdout, stderr, status := s.wait()
	assert.Equal(t, 0, status, stderr)
	assert.Contains(t, stdout, ownReply(all[0].tag))
	r.settled(answeredOnce(all...)...)
	r.sessionsGone(ctx)
}

// The service that a timer starts ends when nothing waits, and starts no session
// when nothing did.
func TestUnattendedTimer(t *testing.T) {
	ctx := minutes(t)
	all := some(2)
	r := newRig(t, own).add(all...)
	for range 2 {
		_, stderr, status := r.service(ctx, "heartbeat@.service", newManager(t)).wait()
		assert.Zero(t, status, stderr)
		assert.Equal(t, 3, r.turns())
	}
	r.settled(answeredOnce(all...)...)
	r.sessionsGone(ctx)
}
