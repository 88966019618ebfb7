package sharing

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/machine/socket"
	"heartbeat/internal/screen"
)

const (
	maxWatchers   = 16
	helloPatience = 5 * time.Second  // for a peer's hello
	drawPatience  = 30 * time.Second // for a watcher's reading of a picture, before it is dropped
	// drawEvery is the shortest time between two pictures.
	drawEvery = 20 * time.Millisecond
	// keysKept is how many pieces of typed text may wait for the session. Later pieces are lost.
	keysKept = 256
)

// Session is the running session.
type Session struct {
	Screen *screen.Screen
	Name   func() string
	// Type types bytes. It may block until the session reads them or is over.
	Type func([]byte)
	// Resize sets the size of the session's terminal; 0, 0 restores its own. It must not block.
	Resize func(rows, cols int)

	keys chan []byte
	over chan struct{}
}

// Server is the launcher's side. The zero value does not listen.
type Server struct {
	doing    func() string // what the launcher does between sessions
	path     string
	listener *net.UnixListener
	serving  sync.WaitGroup

	mu       sync.Mutex
	session  *Session // nil between two sessions
	watchers []*watcher
	typist   *watcher // the watcher who types, nil for none
	typedAt  time.Time
	closed   bool
}

// Listen listens in the folder, which only this user can reach, and no more in an earlier one.
func (s *Server) Listen(folder string, doing func() string) error {
	listener, err := socket.Listen(folder, SocketName)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.listener.Close() // nil at first, and later where nobody finds it
	s.doing, s.path, s.listener = doing, filepath.Join(folder, SocketName), listener
	go s.accept(listener)
	return nil
}

// Path is the socket's path, "" if the server does not listen.
func (s *Server) Path() string { return s.path }

// byePatience is how long watchers may take to receive the launcher's end.
const byePatience = time.Second

// Close takes no more watchers and sends the others away.
func (s *Server) Close() {
	if s.path == "" {
		return
	}
	_ = disk.Remove(s.path) // if it fails, the folder's owner removes it
	_ = s.listener.Close()  // nothing is lost
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.End("the launcher has ended")
	sent := make(chan struct{})
	go func() { s.serving.Wait(); close(sent) }()
	select {
	case <-sent:
	case <-time.After(byePatience):
	}
}

// Begin lets watchers attach to a session.
func (s *Server) Begin(to *Session) {
	to.keys, to.over = make(chan []byte, keysKept), make(chan struct{})
	go func() {
		for {
			select {
			case b := <-to.keys:
				to.Type(b)
			case <-to.over:
				return
			}
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = to
}

// End ends the session for all watchers, with a sentence on why.
func (s *Server) End(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil {
		close(s.session.over)
	}
	for _, w := range s.watchers {
		w.end(why)
	}
	s.session, s.typist, s.watchers = nil, nil, nil
}

// Drawn has each watcher's picture drawn again, since the session's screen has changed.
func (s *Server) Drawn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redraw()
}

func (s *Server) redraw() {
	for _, w := range s.watchers {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// Attended reports whether a person who may type is attached.
func (s *Server) Attended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typist != nil
}

// TypedSince reports whether anybody has typed since t.
func (s *Server) TypedSince(t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typedAt.After(t)
}

// join makes w watch the running session. w types if nobody else does, or with take.
func (s *Server) join(w *watcher, take bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errors.New("the launcher has ended")
	case s.session == nil:
		return fmt.Errorf("no session runs now: %s", cmp.Or(s.doing(), "the launcher has just begun"))
	case len(s.watchers) >= maxWatchers:
		return fmt.Errorf("%d are attached already, and no more can be", maxWatchers)
	}
	w.session = s.session
	s.watchers = append(s.watchers, w)
	if take && !w.onlyWatches {
		s.typist = w
	}
	s.elect()
	return nil
}

func (s *Server) leave(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = slices.DeleteFunc(s.watchers, func(other *watcher) bool { return other == w })
	if s.typist == w {
		s.typist = nil
	}
	s.elect()
	w.end("")
}

// elect lets a watcher type if nobody does: the longest attached one that may. The session's
// terminal gets that watcher's size, or its own back.
func (s *Server) elect() {
	if s.session == nil {
		return
	}
	for _, w := range s.watchers {
		if s.typist == nil && !w.onlyWatches {
			s.typist = w
		}
		w.types = w == s.typist
	}
	if s.typist == nil {
		s.session.Resize(0, 0)
	} else {
		is := s.typist.is
		s.session.Resize(max(1, is.Rows-1), is.Cols)
	}
	s.redraw()
}

// receive handles the watcher's frames until the watcher is gone.
func (s *Server) receive(w *watcher) {
	for {
		kind, what, err := readFrame(w.conn, maxSent)
		if err != nil {
			return
		}
		switch kind {
		case frameKeys:
			s.typeKeys(w, what)
		case frameSize:
			var is size
			if json.Unmarshal(what, &is) == nil {
				s.mu.Lock()
				w.is = is.bounded()
				s.elect()
				s.mu.Unlock()
			}
		}
	}
}

func (s *Server) typeKeys(w *watcher, keys []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.typist != w || s.session == nil || len(keys) == 0 {
		return
	}
	s.typedAt = time.Now()
	select {
	case s.session.keys <- keys:
	default: // the session reads nothing
	}
}
