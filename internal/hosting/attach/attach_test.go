package attach_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
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
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/machine/socket"
)

// session is a backend whose transcript is in memory.
type session struct {
	mu       sync.Mutex
	changed  chan struct{}
	messages []stream.Stored
	closed   bool
	refusal  error
	grace    time.Duration
	sent     []inbox.Message
}

func newSession(messages int) *session {
	s := &session{changed: make(chan struct{})}
	for range messages {
		s.add("hello")
	}
	return s
}

func (s *session) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *session) add(text string) {
	raw, _ := json.Marshal(map[string]string{"type": "assistant", "text": text})
	s.change(func() {
		n := int64(len(s.messages) + 1)
		s.messages = append(s.messages, stream.Stored{N: n, At: time.Unix(n, 5).UTC(), Type: "assistant", Content: raw})
	})
}

func (s *session) end() { s.change(func() { s.closed = true }) }

func (s *session) look(from int64) ([]stream.Stored, bool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages[min(int(from)-1, len(s.messages)):], s.closed, s.changed
}

func (s *session) Messages(ctx context.Context, from int64) iter.Seq2[stream.Stored, error] {
	return func(yield func(stream.Stored, error) bool) {
		for {
			all, closed, changed := s.look(from)
			for _, m := range all {
				if !yield(m, nil) {
					return
				}
				from = m.N + 1
			}
			if closed && len(all) == 0 {
				return
			}
			if len(all) > 0 {
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(stream.Stored{}, ctx.Err())
				return
			}
		}
	}
}

func (s *session) Status() any { return map[string]string{"state": "running", "error": "none"} }

func (s *session) Stop(_ context.Context, _, grace time.Duration) error { return s.Cancel(grace) }

func (s *session) Cancel(grace time.Duration) error {
	s.change(func() { s.grace = grace })
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

// collect reads the numbers of the messages.
func collect(t *testing.T, folder string, from int64) (numbers []int64, err error) {
	for m, err := range (attach.Host{Folder: folder}).Messages(t.Context(), from) {
		if err != nil {
			return numbers, err
		}
		numbers = append(numbers, m.N)
	}
	return numbers, nil
}

func TestStatusCancelAndSend(t *testing.T) {
	folder, s := t.TempDir(), newSession(0)
	serve(t, folder, s, attach.Options{})
	host := attach.Host{Folder: folder}
	status, err := host.Status(t.Context())
	require.NoError(t, err)
	assert.JSONEq(t, `{"state":"running","error":"none"}`, string(status))
	require.NoError(t, host.Cancel(t.Context(), 3*time.Second))
	assert.Equal(t, 3*time.Second, s.grace)
	require.NoError(t, host.Cancel(t.Context(), -1))
	assert.Negative(t, s.grace)
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
	server := serve(t, folder, newSession(0), attach.Options{})
	info, err := os.Lstat(server.Path())
	require.NoError(t, err)
	assert.Equal(t, os.ModeSocket|0o600, info.Mode())
	require.NoError(t, server.Close(0))
	assert.NoFileExists(t, server.Path())
	_, err = attach.Host{Folder: folder}.Status(t.Context())
	assert.ErrorIs(t, err, attach.ErrNotRunning)
}

func TestAFolderWithALongPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux reaches a folder by its descriptor")
	}
	folder := filepath.Join(t.TempDir(), strings.Repeat("a", 200), strings.Repeat("b", 200))
	require.NoError(t, os.MkdirAll(folder, 0o700))
	s := newSession(3)
	s.end()
	serve(t, folder, s, attach.Options{})
	assert.FileExists(t, filepath.Join(folder, attach.SocketName))
	numbers, err := collect(t, folder, 1)
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 2, 3}, numbers)
}

func TestASocketThatADeadHostLeft(t *testing.T) {
	folder := t.TempDir()
	left, err := socket.Listen(folder, attach.SocketName)
	require.NoError(t, err)
	require.NoError(t, left.Close())
	require.FileExists(t, filepath.Join(folder, attach.SocketName))
	_, err = attach.Host{Folder: folder}.Status(t.Context())
	require.ErrorIs(t, err, attach.ErrNotRunning)
	serve(t, folder, newSession(0), attach.Options{})
	_, err = attach.Host{Folder: folder}.Status(t.Context())
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

func TestReadersGetEveryMessageOnce(t *testing.T) {
	const readers, messages = 20, 300
	folder, s := t.TempDir(), newSession(100)
	serve(t, folder, s, attach.Options{})
	got := make([][]int64, readers)
	var all sync.WaitGroup
	for i := range readers {
		all.Go(func() { got[i], _ = collect(t, folder, int64(1+i*10)) })
	}
	for range messages - 100 {
		s.add("more")
	}
	s.end()
	all.Wait()
	for i, numbers := range got {
		require.Len(t, numbers, messages-i*10, "reader %d", i)
		for j, n := range numbers {
			require.Equal(t, int64(1+i*10+j), n)
		}
	}
}

func TestAMessageArrivesAsItWas(t *testing.T) {
	folder, s := t.TempDir(), newSession(0)
	s.add("<&> é \u2028 " + strings.Repeat("x", 3<<20))
	s.end()
	serve(t, folder, s, attach.Options{})
	for m, err := range (attach.Host{Folder: folder}).Messages(t.Context(), 0) {
		require.NoError(t, err)
		assert.Equal(t, s.messages[0], m)
	}
}

// raw sends a text and returns the connection.
func raw(t *testing.T, server *attach.Server, text string) net.Conn {
	conn, err := net.Dial("unix", server.Path())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	return conn
}

// get is a request for messages.
const get = "GET /messages HTTP/1.1\r\nHost: session\r\n\r\n"

func TestBadRequests(t *testing.T) {
	server := serve(t, t.TempDir(), newSession(0), attach.Options{Patience: time.Minute})
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
	server := serve(t, t.TempDir(), newSession(0), attach.Options{Patience: time.Minute})
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
	server := serve(t, t.TempDir(), newSession(0), attach.Options{Patience: time.Millisecond})
	answer, err := io.ReadAll(raw(t, server, ""))
	require.NoError(t, err, "the connection is closed")
	assert.Empty(t, string(answer))
}

// A body that does not come ends the connection, also of a request that is refused.
func TestABodyThatIsOwed(t *testing.T) {
	server := serve(t, t.TempDir(), newSession(0), attach.Options{Patience: 20 * time.Millisecond})
	for _, line := range []string{"POST /send", "POST /cancel", "GET /status", "PUT /send", "POST /else"} {
		answer, err := io.ReadAll(raw(t, server, line+" HTTP/1.1\r\nHost: session\r\nContent-Length: 100\r\n\r\n"))
		require.NoError(t, err, "the connection is closed")
		assert.Contains(t, string(answer), "HTTP/1.1 ", line)
	}
}

// A reader may wait for longer than anybody else for what comes next.
func TestAReaderThatWaits(t *testing.T) {
	s := newSession(0)
	server := serve(t, t.TempDir(), s, attach.Options{Patience: 20 * time.Millisecond})
	conn := raw(t, server, get)
	time.Sleep(100 * time.Millisecond) // it is waiting by now
	s.add("late")
	s.end()
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Contains(t, string(answer), "late")
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
			_, _ = io.WriteString(conn, `{"error":"the request is not one JSON object"}`+"\n")
			_ = conn.Close()
		}
	}()
	assert.ErrorIs(t, attach.Host{Folder: folder}.Cancel(t.Context(), 0), attach.ErrOther)
	_, err = collect(t, folder, 1)
	assert.ErrorIs(t, err, attach.ErrOther)
}

// TestASlowReader holds that it neither holds up the session nor misses a message.
func TestASlowReader(t *testing.T) {
	folder, s := t.TempDir(), newSession(0)
	text := strings.Repeat("x", 1000)
	for range 3000 { // more than the kernel keeps for it
		s.add(text)
	}
	s.end()
	server := serve(t, folder, s, attach.Options{Patience: 20 * time.Millisecond})
	conn := raw(t, server, get)
	lines := bufio.NewReader(conn)
	resp, err := http.ReadResponse(lines, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return server.Readers() == 0 }, time.Minute, time.Millisecond)
	_, err = io.Copy(io.Discard, resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "what it has got is not all")
	next := int64(0)
	for m, err := range (attach.Host{Folder: folder}).Messages(t.Context(), 1) {
		require.NoError(t, err)
		require.Equal(t, next+1, m.N)
		next = m.N
		if m.N == 100 {
			require.Eventually(t, func() bool { return server.Readers() == 0 }, time.Minute, time.Millisecond)
		}
	}
	assert.Equal(t, int64(3000), next)
}

func TestTooManyConnections(t *testing.T) {
	folder, s := t.TempDir(), newSession(1)
	server := serve(t, folder, s, attach.Options{Connections: 2})
	first, second := raw(t, server, get), raw(t, server, get)
	for _, conn := range []net.Conn{first, second} {
		_, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := attach.Host{Folder: folder}.Status(soon)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	asked := make(chan error)
	go func() {
		_, err := attach.Host{Folder: folder}.Status(t.Context())
		asked <- err
	}()
	require.NoError(t, first.Close())
	assert.NoError(t, <-asked, "it waits until there is room")
}

func TestAThousandConnections(t *testing.T) {
	folder, s := t.TempDir(), newSession(5)
	s.end()
	serve(t, folder, s, attach.Options{Connections: 50})
	before := descriptors(t)
	var all sync.WaitGroup
	errs := make(chan error, 1000)
	for range 1000 {
		all.Go(func() {
			numbers, err := collect(t, folder, 1)
			if len(numbers) != 5 {
				err = errors.Join(err, fmt.Errorf("%d messages", len(numbers)))
			}
			errs <- err
		})
	}
	all.Wait()
	for range 1000 {
		require.NoError(t, <-errs)
	}
	require.Eventually(t, func() bool { return descriptors(t) <= before+5 }, time.Minute, 10*time.Millisecond)
}

func descriptors(t *testing.T) int {
	open, err := os.ReadDir("/dev/fd")
	require.NoError(t, err)
	return len(open)
}

// TestTheHostIsReplaced holds that a reader goes on where it was, and says from which
// number on the rest is missing once nobody serves the session.
func TestTheHostIsReplaced(t *testing.T) {
	folder, s := t.TempDir(), newSession(2)
	server := serve(t, folder, s, attach.Options{})
	var next int64 = 1
	for m, err := range (attach.Host{Folder: folder}).Messages(t.Context(), 1) {
		if err != nil {
			assert.ErrorIs(t, err, attach.ErrNotRunning)
			break
		}
		require.Equal(t, next, m.N)
		next++
		switch m.N {
		case 2:
			require.NoError(t, server.Close(0))
			server = serve(t, folder, s, attach.Options{})
			s.add("after")
		case 3:
			require.NoError(t, server.Close(0))
		}
	}
	assert.Equal(t, int64(4), next)
}

func TestAReaderThatStops(t *testing.T) {
	folder := t.TempDir()
	server := serve(t, folder, newSession(10), attach.Options{})
	for m, err := range (attach.Host{Folder: folder}).Messages(t.Context(), 4) {
		require.NoError(t, err)
		assert.Equal(t, int64(4), m.N)
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for m, err := range (attach.Host{Folder: folder}).Messages(ctx, 10) {
		if last = err; m.N == 10 {
			cancel()
		}
	}
	assert.ErrorIs(t, last, context.Canceled)
	require.Eventually(t, func() bool { return server.Readers() == 0 }, time.Minute, time.Millisecond)
}
