package supervise

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/machine/signals"
	"heartbeat/internal/supervise/terminal"
)

// A service manager's status says at the end why there is one, in one line.
func TestServiceEnds(t *testing.T) {
	conn := manager(t)
	s := newService(func() string { return "all is well" }, func() bool { return true })
	s.end(&ending{reason: SetUp, detail: "claude is missing\nREADY=1"})
	assert.Equal(t, "STOPPING=1\nSTATUS=has ended: set-up: claude is missing READY=1", heard(t, conn, "STOPPING=1"))
}

// A manager whose TimeoutStopSec is shorter than --drain-timeout kills no launcher that waits for an answer.
func TestAWarmStopHasItsTime(t *testing.T) {
	conn, stop, taken := manager(t), make(chan struct{}), signals.Catch()
	defer taken.Stop()
	r := &run{Options: Options{Stopping: Stopping{Warm: true, DrainTimeout: 10 * time.Minute, Stop: stop}, Terminal: terminal.Options{Signals: taken, Grace: 2 * time.Minute}}}
	defer r.heedStop()()
	close(stop)
	assert.Equal(t, "EXTEND_TIMEOUT_USEC=1110000000", heard(t, conn, "EXTEND"))
}

// manager is the socket of a service manager.
func manager(t *testing.T) *net.UnixConn {
	dir, err := os.MkdirTemp("", "hb") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", at)
	return conn
}

// heard is the first message to the manager that begins so.
func heard(t *testing.T, conn *net.UnixConn, begin string) (last string) {
	for buffer := make([]byte, 4096); !strings.HasPrefix(last, begin); {
		n, err := conn.Read(buffer)
		require.NoError(t, err)
		last = string(buffer[:n])
	}
	return last
}
