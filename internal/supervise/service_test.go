package supervise

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A service manager's status says at the end why there is one, in one line.
func TestServiceEnds(t *testing.T) {
	dir, err := os.MkdirTemp("", "hb") // a socket's path is short
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	at := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	require.NoError(t, err)
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", at)
	s := announce(func() string { return "all is well" }, func() bool { return true })
	s.end(&ending{reason: SetUp, detail: "claude is missing\nREADY=1"})
	last, buffer := "", make([]byte, 4096)
	for !strings.HasPrefix(last, "STOPPING=1") {
		n, err := conn.Read(buffer)
		require.NoError(t, err)
		last = string(buffer[:n])
	}
	assert.Equal(t, "STOPPING=1\nSTATUS=has ended: set-up: claude is missing READY=1", last)
}
