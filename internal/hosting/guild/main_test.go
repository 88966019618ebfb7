package guild

import (
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/testing/crash"
	testguild "heartbeat/internal/testing/guild"
)

func TestMain(m *testing.M) {
	testguild.RunIfAsked()
	crash.Main(m, map[string]func() int{"end": end})
}

const session = "ses-1"

func newClient(t *testing.T, url string, clock *testguild.Clock) *Client {
	c, err := New(Options{URL: url, SessionID: session, Clock: clock, RequestTimeout: 10 * time.Minute})
	require.NoError(t, err)
	return c
}

// newGuild is a guild that expects the session, with a tool called signal.
func newGuild(t *testing.T, o testguild.Options) (*testguild.Guild, string) {
	g, url := emptyGuild(t, o)
	g.Expect(session, "signal")
	g.AddTool(testguild.Tool{Name: "signal"})
	return g, url
}

// emptyGuild is a guild that expects no session.
func emptyGuild(t *testing.T, o testguild.Options) (*testguild.Guild, string) {
	g, err := testguild.Open(o)
	require.NoError(t, err)
	server := httptest.NewServer(g)
	t.Cleanup(func() {
		require.NoError(t, g.Close())
		server.Close()
	})
	return g, server.URL
}

// port is a port of 127.0.0.1 that is taken and that nobody listens on yet.
type port struct {
	address string
	file    *os.File
}

func newPort(t *testing.T) *port {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	p := &port{file: os.NewFile(uintptr(fd), "port")}
	t.Cleanup(func() { _ = p.file.Close() })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	at, err := unix.Getsockname(fd)
	require.NoError(t, err)
	p.address = fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port)
	return p
}

func (p *port) listen(t *testing.T) net.Listener {
	require.NoError(t, unix.Listen(int(p.file.Fd()), 16))
	l, err := net.FileListener(p.file)
	require.NoError(t, err)
	return l
}
