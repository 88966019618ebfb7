package attach_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/machine/socket"
)

// session is a backend.
type session struct {
	mu      sync.Mutex
	refusal error
	end     attach.End
	sent    []inbox.Message
}

func (s *session) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *session) Status() any { return map[string]string{"state": "running", "error": "none"} }

func (s *session) Cancel(_ context.Context, e attach.End) error {
	s.change(func() { s.end = e })
	return s.refusal
}

func (s *session) Send(_ context.Context, m inbox.Message) (inbox.Receipt, error) {
	s.change(func() { s.sent = append(s.sent, m) })
	return inbox.Receipt{ID: m.ID, Appended: true}, s.refusal
}

func serve(t *testing.T, folder string, b attach.Backend, o attach.Options) *attach.Server {
	server, err := attach.Serve(folder, b, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close(0) })
	return server
}

func TestStatusCancelAndSend(t *testing.T) {
	folder, s := t.TempDir(), &session{}
	serve(t, folder, s, attach.Options{})
	host := attach.Host{Folder: folder}
	var status json.RawMessage
	require.NoError(t, host.Status(t.Context(), &status))
	assert.JSONEq(t, `{"state":"running","error":"none"}`, string(status))
	for _, e := range []attach.End{{Grace: 3 * time.Second}, {Grace: -1}, {Warm: true, Most: time.Minute}, {Warm: true, Grace: -1}} {
		require.NoError(t, host.Cancel(t.Context(), e))
		assert.Equal(t, e, s.end)
	}
	receipt, err := host.Send(t.Context(), "a", strings.Repeat("\x01é\n", attach.MaxText/4))
	require.NoError(t, err)
	assert.True(t, receipt.Appended)
	assert.Equal(t, strings.Repeat("\x01é\n", attach.MaxText/4), s.sent[0].Text)
	_, err = host.Send(t.Context(), "", strings.Repeat("x", attach.MaxText+1))
	assert.ErrorContains(t, err, "append it to the inbox")
	s.refusal = fmt.Errorf("%w: resume it", attach.ErrEnded)
	_, err = host.Send(t.Context(), "", "late")
	assert.ErrorIs(t, err, attach.ErrEnded)
	assert.ErrorContains(t, err, "resume it")
}

func TestTheSocketIsItsOwnersAlone(t *testing.T) {
	folder := t.TempDir()
	server := serve(t, folder, &session{}, attach.Options{})
	info, err := os.Lstat(server.Path())
	require.NoError(t, err)
	assert.Equal(t, os.ModeSocket|0o600, info.Mode())
	require.NoError(t, server.Close(0))
	assert.NoFileExists(t, server.Path())
	err = attach.Host{Folder: folder}.Status(t.Context(), new(json.RawMessage))
	assert.ErrorIs(t, err, attach.ErrNotRunning)
}

func TestAFolderWithALongPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux reaches a folder by its descriptor")
	}
	folder := filepath.Join(t.TempDir(), strings.Repeat("a", 200), strings.Repeat("b", 200))
	require.NoError(t, os.MkdirAll(folder, 0o700))
	serve(t, folder, &session{}, attach.Options{})
	assert.FileExists(t, filepath.Join(folder, attach.SocketName))
	err := attach.Host{Folder: folder}.Status(t.Context(), new(json.RawMessage))
	require.NoError(t, err)
}

func TestASocketThatADeadHostLeft(t *testing.T) {
	folder := t.TempDir()
	left, err := socket.Listen(folder, attach.SocketName)
	require.NoError(t, err)
	require.NoError(t, left.Close())
	require.FileExists(t, filepath.Join(folder, attach.SocketName))
	err = attach.Host{Folder: folder}.Status(t.Context(), new(json.RawMessage))
	require.ErrorIs(t, err, attach.ErrNotRunning)
	serve(t, folder, &session{}, attach.Options{})
	err = attach.Host{Folder: folder}.Status(t.Context(), new(json.RawMessage))
	assert.NoError(t, err)
}

func TestSomethingElseOfTheSocketsName(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, attach.SocketName)
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := socket.Listen(folder, attach.SocketName)
	assert.ErrorContains(t, err, "something else of that name")
	assert.FileExists(t, path)
}

// raw sends a text and returns the connection.
func raw(t *testing.T, server *attach.Server, text string) net.Conn {
	conn, err := net.Dial("unix", server.Path())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	if text != "" { // the server may have closed the connection by now
		_, err = io.WriteString(conn, text)
		require.NoError(t, err)
	}
	return conn
}

// begun is a request whose body is owed.
const begun = "POST /send HTTP/1.1\r\nHost: session\r\nContent-Length: 100\r\n\r\n"

func TestBadRequests(t *testing.T) {
	server := serve(t, t.TempDir(), &session{}, attach.Options{Patience: time.Minute})
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", server.Path())
	}}}
	for path, want := range map[string]string{
		"/send":             "not one JSON object",
		"/attach":           "404 page not found",
		"/status":           "Method Not Allowed",
		"/cancel?grace=so":  "it takes a duration",
		"/cancel?grace=-1s": "it takes a duration",
	} {
		resp, err := client.Post("http://session"+path, "", strings.NewReader("[1]"))
		require.NoError(t, err, path)
		answer, err := io.ReadAll(resp.Body)
		require.NoError(t, errors.Join(err, resp.Body.Close()), path)
		assert.Contains(t, string(answer), want, path)
		assert.NotEqual(t, http.StatusOK, resp.StatusCode)
	}
}

func TestAnEndlessRequestIsCutOff(t *testing.T) {
	server := serve(t, t.TempDir(), &session{}, attach.Options{Patience: time.Minute})
	conn := raw(t, server, "POST /send HTTP/1.1\r\nHost: session\r\nContent-Length: 1000000000000\r\n\r\n{\"text\":\"")
	go func() { // until the server has had enough
		for {
			if _, err := conn.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
				return
			}
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	answer, _ := io.ReadAll(resp.Body) // the server closes the connection
	assert.Contains(t, string(answer), "is not taken here")
}

func TestAPeerThatAsksNothing(t *testing.T) {
	server := serve(t, t.TempDir(), &session{}, attach.Options{Patience: time.Millisecond})
	answer, err := io.ReadAll(raw(t, server, ""))
	require.NoError(t, err, "the connection is closed")
	assert.Empty(t, string(answer))
}

// A body that does not come ends the connection, also of a request that is refused.
func TestABodyThatIsOwed(t *testing.T) {
	server := serve(t, t.TempDir(), &session{}, attach.Options{Patience: time.Second})
	for _, line := range []string{"POST /send", "POST /cancel", "GET /status", "PUT /send", "POST /else"} {
		answer, err := io.ReadAll(raw(t, server, line+" HTTP/1.1\r\nHost: session\r\nContent-Length: 100\r\n\r\n"))
		require.NoError(t, err, "the connection is closed")
		assert.Contains(t, string(answer), "HTTP/1.1 ", line)
	}
}

func TestAHostOfAnotherRelease(t *testing.T) {
	folder := t.TempDir()
	listener, err := socket.Listen(folder, attach.SocketName)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			// The answer comes after a request, or the client takes it for none of its own.
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, `{"error":"the request is not one JSON object"}`+"\n")
			_ = conn.Close()
		}
	}()
	assert.Error(t, attach.Host{Folder: folder}.Cancel(t.Context(), attach.End{}))
}

func TestTooManyConnections(t *testing.T) {
	folder, s := t.TempDir(), &session{}
	server := serve(t, folder, s, attach.Options{Connections: 2})
	first := raw(t, server, begun)
	raw(t, server, begun)
	require.Eventually(t, func() bool { return server.Connections() == 2 }, 5*time.Minute, time.Millisecond)
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := attach.Host{Folder: folder}.Status(soon, new(json.RawMessage))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	asked := make(chan error)
	go func() {
		err := attach.Host{Folder: folder}.Status(t.Context(), new(json.RawMessage))
		asked <- err
	}()
	require.NoError(t, first.Close())
	assert.NoError(t, <-asked, "it waits until there is room")
}

func TestAThousandConnections(t *testing.T) {
	folder, s := t.TempDir(), &session{}
	serve(t, folder, s, attach.Options{Connections: 50})
	before := descriptors(t)
	var all sync.WaitGroup
	errs := make(chan error, 1000)
	for range 1000 {
		all.Go(func() {
			err := attach.Host{Folder: folder}.Status(t.Context(), new(json.RawMessage))
			errs <- err
		})
	}
	all.Wait()
	for range 1000 {
		require.NoError(t, <-errs)
	}
	require.Eventually(t, func() bool { return descriptors(t) <= before+5 }, 5*time.Minute, 10*time.Millisecond)
}

func descriptors(t *testing.T) int {
	open, err := os.ReadDir("/dev/fd")
	require.NoError(t, err)
	return len(open)
}
