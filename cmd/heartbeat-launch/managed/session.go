package managed

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/internal/screen"
	"heartbeat/internal/terminal"
	"heartbeat/internal/words"
)

// session is one session of the client.
type session struct {
	began   time.Time
	resumed bool // with the conversation of another one
	screen  *screen.Screen
	started chan struct{} // closed once a hook told of the start
	over    chan struct{} // closed at the end
	quit    chan struct{} // closed to end it
	printed atomic.Bool   // since the watchdog looked last
	drawn   atomic.Int64  // how often it has printed
	asks    atomic.Bool   // it waits for a person

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
	if r.early {
		r.report.Restarts++
	}
	s := newSession(r.Terminal.Size)
	s.resumed = r.resume != ""
	o := r.Terminal
	o.Command, o.Env, o.Quit = command, r.environment(), s.quit
	o.Watch, o.Resized = s.watch(o.Watch), s.resize(o.Resized)
	o.Idle.Busy = r.inFlight
	if !r.deadline.IsZero() {
		o.Timeout = time.Until(r.deadline)
	}
	r.follow.attach(s, r.hear(s))
	r.current.Store(s)
	go r.guard(s)
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

// after says what the end of a session means.
func (r *run) after(s *session, o terminal.Outcome, err error) *ending {
	if id := s.name(); id != "" {
		r.report.addSession(id)
	}
	switch {
	case err != nil:
		return setUp(err)
	case o.Cause == terminal.Signalled:
		return signalled(o.Signal)
	case o.Cause == terminal.TimedOut:
		return r.timedOut()
	case s.ended().ending != nil:
		return s.ended().ending
	}
	if e := r.quitByHand(s, o); e != nil {
		return e
	}
	return r.reckon(s, o)
}

// quitByHand tells a session that a person ended at the terminal.
func (r *run) quitByHand(s *session, o terminal.Outcome) *ending {
	byHand := r.Attended && o.Cause == terminal.Ended && o.Status.Exited() && o.Status.ExitStatus() == 0 && s.name() != ""
	if !byHand {
		return nil
	}
	return &ending{reason: Quit, detail: "the session was ended at the terminal"}
}

// reckon counts what the session brought, and when the next one may begin.
func (r *run) reckon(s *session, o terminal.Outcome) *ending {
	totals, err := r.totals()
	if err != nil {
		return r.stuck(err)
	}
	r.fruitless++
	if answered := totals.Answered - r.before.Answered; answered > r.answered {
		r.fruitless, r.answered = 0, answered
	}
	r.early = o.Cause != terminal.Asked || s.met(&s.failed) || r.fruitless > 0
	if r.early && !r.intended(s, o) {
		r.Line(time.Now(), how(s, o))
	}
	r.resume = ""
	if r.Resume && r.early {
		r.resume = s.name()
	}
	r.restBehind()
	if s.name() == "" && s.resumed {
		return nil // without a conversation to go on with it may start
	}
	if s.name() == "" && r.fruitless > r.MaxRestarts {
		return r.notStarted(s, "no session started in "+words.Count(r.report.Sessions, "try", "tries"))
	}
	if s.name() == "" {
		return r.refused(s)
	}
	return nil
}

// intended reports an end that needs no word: the hook asked for it, or in print
// mode nothing was left.
func (r *run) intended(s *session, o terminal.Outcome) bool {
	return o.Cause == terminal.Asked && !s.met(&s.failed) || o.Cause == terminal.Ended && o.Status.Exited() && o.Status.ExitStatus() == 0
}

// how says how a session ended that was not asked to.
func how(s *session, o terminal.Outcome) string {
	switch {
	case s.ended().text != "":
		return "the session was ended: " + s.ended().text
	case o.Cause == terminal.GaveUp:
		return "the session was ended: it printed nothing for too long"
	case o.Cause == terminal.Asked:
		return "the session was ended behind an error"
	case o.Status.Signaled():
		return fmt.Sprintf("the session was ended by signal %d (%v)", o.Status.Signal(), o.Status.Signal())
	}
	return fmt.Sprintf("the session ended with status %d", o.Status.ExitStatus())
}
