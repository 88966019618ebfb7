package sharing

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/machine/socket"
	"heartbeat/internal/screen"
)

const patience = 5 * time.Minute

// stage is a session that is made up.
type stage struct {
	t      *testing.T
	server *Server
	folder string
	its    *Session

	mu    sync.Mutex
	typed string
	size  [2]int
}

func newStage(t *testing.T) *stage {
	folder, err := os.MkdirTemp("", "attach-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	s := &stage{t: t, folder: folder, server: &Server{}}
	require.NoError(t, s.server.Listen(folder, func() string { return "it rests" }))
	t.Cleanup(s.server.Close)
	return s
}

func (s *stage) begins() {
	s.its = &Session{
		Screen: screen.New(10, 40), Name: func() string { return "0123456789abcdef" },
		Type: func(b []byte) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.typed += string(b)
		},
		Resize: func(rows, cols int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.size = [2]int{rows, cols}
		},
	}
	s.server.Begin(s.its)
}

func (s *stage) prints(text string) {
	_, _ = s.its.Screen.Write([]byte(text))
	s.server.Drawn()
}

func (s *stage) eventually(what string, is func() bool) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return is()
	}, patience, time.Millisecond, what)
}

// peer is a connection of a watcher.
type peer struct {
	t    *testing.T
	conn net.Conn
	sees *screen.Screen
}

func (s *stage) dials() *peer {
	conn, err := net.Dial("unix", filepath.Join(s.folder, SocketName))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(s.t, conn.SetDeadline(time.Now().Add(patience)))
	return &peer{s.t, conn, screen.New(21, 50)}
}

func (s *stage) attaches(h hello) *peer {
	p := s.dials()
	h.Version = version
	if h.Rows == 0 {
		h.size = size{21, 50}
	}
	require.NoError(s.t, writeJSON(p.conn, frameHello, h))
	return p
}

// next is the next frame of a kind; pictures in between are drawn.
func (p *peer) next(kind byte) string {
	p.t.Helper()
	for {
		got, what, err := readFrame(p.conn, maxDrawn)
		require.NoError(p.t, err)
		if got == frameDraw {
			_, _ = p.sees.Write(what)
		}
		if got == kind {
			return string(what)
		}
	}
}

func (p *peer) shows(text string) {
	p.t.Helper()
	for !strings.Contains(p.sees.Text(), text) {
		p.next(frameDraw)
	}
}

// The session's terminal has the size of who types, less the line below it, and its own
// again once nobody does.
func TestTheSizeOfWhoTypes(t *testing.T) {
	s := newStage(t)
	s.begins()
	only := s.attaches(hello{Watch: true})
	only.shows("you watch")
	assert.False(t, s.server.Attended(), "who only watches answers nothing")
	a := s.attaches(hello{})
	a.shows("you type")
	assert.True(t, s.server.Attended())
	s.eventually("the first's", func() bool { return s.size == [2]int{20, 50} })
	b := s.attaches(hello{size: size{31, 70}})
	b.shows("somebody else types (--take)")
	require.NoError(t, writeJSON(b.conn, frameSize, size{41, 80}))
	require.NoError(t, writeJSON(a.conn, frameSize, size{11, 60}))
	s.eventually("the first's new one", func() bool { return s.size == [2]int{10, 60} })
	require.NoError(t, a.conn.Close())
	s.eventually("the next one's", func() bool { return s.size == [2]int{40, 80} })
	require.NoError(t, b.conn.Close())
	s.eventually("its own", func() bool { return s.size == [2]int{0, 0} })
	require.NoError(t, writeJSON(only.conn, frameSize, size{1 << 40, 1 << 40}))
	require.NoError(t, writeFrame(only.conn, frameSize, []byte("not JSON")))
	s.prints("goes on")
	only.sees = screen.New(maxRows, maxCols)
	only.shows("goes on")
}

func TestKeysOfWhoTypes(t *testing.T) {
	s := newStage(t)
	s.begins()
	before := time.Now()
	a := s.attaches(hello{})
	a.shows("you type")
	b := s.attaches(hello{})
	b.shows("somebody else types")
	require.NoError(t, writeFrame(b.conn, frameKeys, []byte("no")))
	assert.False(t, s.server.TypedSince(before))
	require.NoError(t, writeFrame(a.conn, frameKeys, []byte("yes")))
	s.eventually("keys", func() bool { return s.typed == "yes" })
	assert.True(t, s.server.TypedSince(before))
	c := s.attaches(hello{Take: true})
	c.shows("you type")
	require.NoError(t, writeFrame(a.conn, frameKeys, []byte("no")))
	require.NoError(t, writeFrame(c.conn, frameKeys, []byte(" sir")))
	s.eventually("keys", func() bool { return s.typed == "yes sir" })
	require.NoError(t, c.conn.Close())
	a.shows("you type")
}

// A session that reads nothing holds nobody up, neither who types nor who comes next.
func TestKeysThatAreNotRead(t *testing.T) {
	s := newStage(t)
	s.begins()
	read := make(chan struct{})
	s.its.Type = func([]byte) { <-read }
	a := s.attaches(hello{})
	a.shows("you type")
	for range 2 * keysKept {
		require.NoError(t, writeFrame(a.conn, frameKeys, []byte("x")))
	}
	require.NoError(t, a.conn.Close())
	s.attaches(hello{}).shows("you type")
	close(read)
}

// A watcher that takes nothing misses pictures, and then sees how things are.
func TestASlowWatcher(t *testing.T) {
	s := newStage(t)
	s.begins()
	slow := s.attaches(hello{})
	slow.shows("you type")
	quick := s.attaches(hello{})
	for i := range 2000 {
		s.prints("\x1b[H" + strings.Repeat(string(rune('a'+i%26)), 400))
	}
	s.prints("\x1b[2J\x1b[Hthe end")
	quick.shows("the end")
	slow.shows("the end")
}

func TestTheEndIsSaid(t *testing.T) {
	s := newStage(t)
	assert.Equal(t, "no session runs now: it rests", s.attaches(hello{}).next(frameBye))
	s.begins()
	a := s.attaches(hello{})
	var h hello
	require.NoError(t, json.Unmarshal([]byte(a.next(frameHello)), &h))
	assert.Equal(t, hello{Version: version, Session: "0123456789abcdef"}, h)
	a.shows("you type")
	s.server.End("it is over")
	assert.Equal(t, "it is over", a.next(frameBye))
	s.begins()
	b := s.attaches(hello{})
	b.shows("you type")
	s.server.Close()
	assert.Equal(t, "the launcher has ended", b.next(frameBye))
	assert.NoFileExists(t, filepath.Join(s.folder, SocketName))
}

func TestTooManyWatchers(t *testing.T) {
	s := newStage(t)
	s.begins()
	var all []*peer
	for range maxWatchers {
		p := s.attaches(hello{Watch: true})
		p.shows("you watch")
		all = append(all, p)
	}
	assert.Equal(t, "16 are attached already, and no more can be", s.attaches(hello{}).next(frameBye))
	require.NoError(t, all[0].conn.Close())
	require.Eventually(t, func() bool { // without the stage's lock, which the server takes within its own
		s.server.mu.Lock()
		defer s.server.mu.Unlock()
		return len(s.server.watchers) < maxWatchers
	}, patience, time.Millisecond, "one has gone")
	s.attaches(hello{}).shows("you type")
}

func TestBadPeers(t *testing.T) {
	s := newStage(t)
	s.begins()
	for sent, want := range map[string]string{
		"GET / HTTP/1.1\r\n\r\n":       "may have",
		"h\x00\x00\x00\x02no":          "no hello",
		"k\x00\x00\x00\x02{}":          "no hello",
		"h\x00\x00\x00\x08{\"v\":99}":  "version 99",
		"h\xff\xff\xff\xff":            "may have",
		"h\x00\x00\x00\x05{\"v\":\"x}": "no hello",
	} {
		p := s.dials()
		_, err := io.WriteString(p.conn, sent)
		require.NoError(t, err)
		assert.Contains(t, p.next(frameBye), want, "%q", sent)
	}
	p := s.attaches(hello{Key: "ctrl-\x1b[2Jx"})
	p.shows("you type")
	require.NoError(t, writeFrame(p.conn, 'z', []byte("of a later release")))
	_, err := io.WriteString(p.conn, "k\xff\xff\xff\xff")
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, p.conn)
	require.NoError(t, err, "the connection is closed")
	s.attaches(hello{}).shows("you type")
}

// The socket is its owner's alone, also where its mode or its folder was opened up.
func TestAnotherUser(t *testing.T) {
	s := newStage(t)
	s.begins()
	path := filepath.Join(s.folder, SocketName)
	info, err := os.Lstat(path)
	require.NoError(t, err)
	assert.Equal(t, os.ModeSocket|0o600, info.Mode())
	assert.ErrorContains(t, socket.Peer{UID: os.Geteuid() + 1}.CheckUser(), "may not reach this session")
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3, which is another user here")
	}
	require.NoError(t, os.Chmod(s.folder, 0o755))
	require.NoError(t, os.Chmod(path, 0o666))
	out, err := exec.Command(python, "-c", `
import os, socket, sys
os.setresuid(65534, 65534, 65534)
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
print(s.recv(4096))`, path).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "user 65534 may not reach this session: it is that of user 0")
}

// A path that somebody else wrote down leads to nobody but the launcher.
func TestWhoIsBelieved(t *testing.T) {
	s := newStage(t)
	path := filepath.Join(s.folder, SocketName)
	ctx := context.Background()
	conn, err := Dial(ctx, path, os.Getpid())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	conn, err = Dial(ctx, path, -1)
	require.NoError(t, err, "where the launcher's number is not known")
	require.NoError(t, conn.Close())
	_, err = Dial(ctx, path, os.Getppid())
	assert.ErrorContains(t, err, "it is not believed")
	_, err = Dial(ctx, "attach", os.Getpid())
	assert.ErrorContains(t, err, "no absolute path")
	_, err = Dial(ctx, filepath.Join(t.TempDir(), "none"), os.Getpid())
	assert.ErrorContains(t, err, "mode 0755", "a test's own folder is everybody's")
	require.NoError(t, os.Chmod(s.folder, 0o711))
	_, err = Dial(ctx, path, os.Getpid())
	assert.ErrorContains(t, err, "others may reach into")
	require.NoError(t, os.Chmod(s.folder, 0o700))
	s.server.Close()
	_, err = Dial(ctx, path, os.Getpid())
	assert.ErrorIs(t, err, socket.ErrNobody)
}

// A long path is no obstacle.
func TestALongPath(t *testing.T) {
	folder := filepath.Join(t.TempDir(), strings.Repeat("a", 150))
	require.NoError(t, os.Mkdir(folder, 0o700))
	server := &Server{}
	require.NoError(t, server.Listen(folder, func() string { return "it rests" }))
	defer server.Close()
	conn, err := Dial(context.Background(), server.Path(), os.Getpid())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

// A server that does not listen has no watchers.
func TestNoServer(t *testing.T) {
	var none Server
	none.Begin(&Session{})
	none.Drawn()
	none.End("")
	none.Close()
	assert.False(t, none.Attended())
	assert.False(t, none.TypedSince(time.Time{}))
	assert.Empty(t, none.Path())
}

// A stopped launcher takes connections and never answers, which a person is told.
func TestALauncherThatSaysNothing(t *testing.T) {
	greetPatience = time.Millisecond
	t.Cleanup(func() { greetPatience = drawPatience })
	folder := t.TempDir()
	l, err := socket.Listen(folder, SocketName)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	conn, err := socket.Dial(t.Context(), folder, SocketName)
	require.NoError(t, err)
	_, err = Attach(t.Context(), conn, Watch{In: os.Stdin, Out: os.Stdin})
	assert.EqualError(t, err, "the launcher has sent nothing for 1ms: if it is stopped, let it continue (kill -CONT)")
}
