package managed

import (
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/internal/claude/screen"
	"heartbeat/internal/launch/terminal"
)

// session is one session of the client.
type session struct {
	began   time.Time
	seq     int64 // the first commit to the inbox that may be its own
	resumed bool  // with the conversation of another one
	screen  *screen.Screen
	started chan struct{} // closed once a hook told of the start
	over    chan struct{} // closed at the end
	quit    chan struct{} // closed to end it
	printed atomic.Bool   // since the watchdog looked last
	drawn   atomic.Int64  // how often it has printed
	asks    atomic.Bool   // it waits for a person
	typed   typed

	mu     sync.Mutex
	id     string
	failed bool     // a turn ended in an error
	worked bool     // an entry was delivered to it
	why    *verdict // why it was to end, nil if that was not ours to say
}

// verdict is why a session is ended.
type verdict struct {
	ending *ending // of all the work, nil where another session may follow
	text   string
	asked  bool // it waits for a person
}

func newSession(size terminal.Size) *session {
	return &session{
		began: time.Now(), screen: screen.New(int(size.Rows), int(size.Cols)),
		started: make(chan struct{}), over: make(chan struct{}), quit: make(chan struct{}),
	}
}

func (s *session) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// start notes that a hook told of the session's start. After a `/clear` it has
// another name.
func (s *session) start(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == "" {
		close(s.started)
	}
	s.id = id
}

// end has the session end. The first reason counts.
func (s *session) end(v verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil {
		s.why = &v
		close(s.quit)
	}
}

// ended is why the session was to end, empty if that was not ours to say.
func (s *session) ended() verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil {
		return verdict{}
	}
	return *s.why
}

func (s *session) note(what *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*what = true
}

func (s *session) met(what *bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *what
}

// watch keeps the screen as the session shows it.
func (s *session) watch(further func([]byte)) func([]byte) {
	return func(b []byte) {
		s.printed.Store(true)
		s.drawn.Add(1)
		s.asks.Store(false)
		_, _ = s.screen.Write(b) // it takes everything
		if further != nil {
			further(b)
		}
	}
}

func (s *session) resize(further func(terminal.Size)) func(terminal.Size) {
	return func(size terminal.Size) {
		s.screen.Resize(int(size.Rows), int(size.Cols))
		if further != nil {
			further(size)
		}
	}
}
