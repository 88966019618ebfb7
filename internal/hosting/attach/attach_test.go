package attach_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
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
)

// session is a backend whose transcript is in memory.
type session struct {
	mu       sync.Mutex
	changed  chan struct{}
	messages []attach.Message
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
		s.messages = append(s.messages, attach.Message{N: n, At: time.Unix(n, 5).UTC(), Type: "assistant", Raw: raw})
	})
}

func (s *session) end() { s.change(func() { s.closed = true }) }

func (s *session) look(from int64) ([]attach.Message, bool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages[min(int(from)-1, len(s.messages)):], s.closed, s.changed
}

func (s *session) Messages(ctx context.Context, from int64) iter.Seq2[attach.Message, error] {
	return func(yield func(attach.Message, error) bool) {
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
				yield(attach.Message{}, ctx.Err())
				return
			}
		}
	}
}

func (s *session) Status() any { return map[string]string{"state": "running", "error": "none"} }

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
	_, err = attach.Listen(folder)
	assert.ErrorIs(t, err, attach.ErrRunning)
}

func TestASocketThatADeadHostLeft(t *testing.T) {
	folder := t.TempDir()
	left, err := attach.Listen(folder)
	require.NoError(t, err)
	require.NoError(t, left.Close())
	require.FileExists(t, filepath.Join(folder, attach.SocketName))
	_, err = attach.Host{Folder: folder}.Status(t.Context())
	require.ErrorIs(t, err, attach.ErrNotRunning)
	serve(t, folder, newSession(0), attach.Options{})
	_, err = attach.Host{Folder: folder}.Status(t.Context())
	assert.NoError(t, err)
	_, err = attach.Listen(folder)
	assert.ErrorIs(t, err, attach.ErrRunning)
}

func TestSomethingElseOfTheSocketsName(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, attach.SocketName)
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := attach.Listen(folder)
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

// raw sends a line and returns the connection.
func raw(t *testing.T, server *attach.Server, line string) net.Conn {
	conn, err := net.Dial("unix", server.Path())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	if line != "" {
		_, err = io.WriteString(conn, line)
		require.NoError(t, err)
	}
	return conn
}

func TestBadRequests(t *testing.T) {
	server := serve(t, t.TempDir(), newSession(0), attach.Options{Patience: time.Minute})
	for line, want := range map[string]string{
		"\n":                                    "not one JSON object",
		"{}\n":                                  `unknown op \"\": it is one of attach, status, cancel, send`,
		"[1]\n":                                 "not one JSON object",
		`{"op":"cancel","grace":"soon"}` + "\n": "it takes a duration",
		`{"op":"cancel","grace":"-1s"}` + "\n":  "it takes a duration",
	} {
		answer, err := bufio.NewReader(raw(t, server, line)).ReadString('\n')
		require.NoError(t, err, line)
		assert.Contains(t, answer, `{"error":"`, line)
		assert.Contains(t, answer, want, line)
	}
}

func TestAnEndlessRequestIsCutOff(t *testing.T) {
	server := serve(t, t.TempDir(), newSession(0), attach.Options{Patience: time.Minute})
	conn := raw(t, server, `{"op":"send","text":"`)
	go func() { // until the server has had enough
		for {
			if _, err := conn.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}()
	answer, _ := bufio.NewReader(conn).ReadString('\n')
	assert.Contains(t, answer, "the request is longer than")
}

func TestAPeerThatAsksNothing(t *testing.T) {
	server := serve(t, t.TempDir(), newSession(0), attach.Options{Patience: time.Millisecond})
	answer, err := io.ReadAll(raw(t, server, ""))
	require.NoError(t, err)
	assert.Contains(t, string(answer), "no request within 1ms")
}

func TestAReaderThatOnlyEndedItsWriting(t *testing.T) {
	s := newSession(1)
	server := serve(t, t.TempDir(), s, attach.Options{})
	conn := raw(t, server, `{"op":"attach"}`) // no newline: the end of the writing will do
	require.NoError(t, conn.(*net.UnixConn).CloseWrite())
	lines := bufio.NewReader(conn)
	for n := range 3 {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		assert.Contains(t, line, fmt.Sprintf(`{"n":%d,`, n+1))
		s.add("another")
	}
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
	conn := raw(t, server, `{"op":"attach","from":1}`+"\n")
	_, err := conn.Read(make([]byte, 1))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return server.Readers() == 0 }, time.Minute, time.Millisecond)
	last := ""
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		last = lines.Text()
	}
	assert.NotContains(t, last, `"end":true`)
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
	first, second := raw(t, server, `{"op":"attach"}`+"\n"), raw(t, server, `{"op":"attach"}`+"\n")
	for _, conn := range []net.Conn{first, second} {
		_, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
	}
	answer, err := io.ReadAll(raw(t, server, ""))
	require.NoError(t, err)
	assert.Contains(t, string(answer), `"busy":true`)
	asked := make(chan error)
	go func() {
		_, err := attach.Host{Folder: folder}.Status(t.Context())
		asked <- err
	}()
	require.NoError(t, first.Close())
	assert.NoError(t, <-asked, "it tries again until there is room")
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
