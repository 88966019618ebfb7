package managed

import (
	"os"
	"path/filepath"
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

// runSession runs one session, and tells whether the work ends with it.
func (r *run) runSession() *ending {
	if !r.deadline.IsZero() && time.Until(r.deadline) <= 0 {
		return r.timedOut()
	}
	command, err := r.wire()
	if err != nil {
		return setUp(err)
	}
	r.report.Sessions++
	r.doing("it starts a session")
	r.asleep = time.Time{}
	if r.early {
		r.report.Restarts++
	}
	s := newSession(r.Terminal.Size)
	s.resumed, s.seq = r.resume != "", r.seq
	o := r.Terminal
	o.Command, o.Env, o.Quit = command, r.environment(), s.quit
	o.Watch, o.Resized = s.watch(o.Watch), s.resize(o.Resized)
	o.Idle.Busy = r.inFlight
	if r.Attended {
		o.Typed, o.MayEnd = s.typed.keys, func() bool { return s.typed.mayEnd(s.screen) }
	}
	if !r.deadline.IsZero() {
		o.Timeout = time.Until(r.deadline)
	}
	r.follow.attach(s, r.hear(s))
	r.current.Store(s)
	go r.guard(s)
	go r.notice(s)
	outcome, err := terminal.Run(o)
	close(s.over)
	r.current.Store(nil)
	r.follow.look()
	r.follow.attach(nil, nil)
	r.last = s
	return r.after(s, outcome, err)
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

// inFlight reports whether an entry is being worked on.
func (r *run) inFlight() bool {
	_, err := os.Lstat(filepath.Join(r.box.Dir(), ".in-flight"))
	return err == nil
}
