package supervise

import (
	"cmp"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/internal/screen"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/sharing"
	"heartbeat/internal/supervise/terminal"
	recovery "heartbeat/recover"
)

type session struct {
	client  *client.Client
	began   time.Time
	seq     int64 // the first commit to the inbox that may be this session's
	resumed bool  // it continues another session's conversation
	screen  *screen.Screen
	over    chan struct{} // closed at the end
	quit    chan struct{} // closed to end it
	drawn   atomic.Int64  // how often it has printed
	asks    atomic.Bool   // the session waits for a person
	failed  atomic.Bool   // a turn ended in an error
	worked  atomic.Bool   // an entry was delivered to it
	entered entered

	id     atomic.Value             // a string; `/clear` changes it
	why    atomic.Pointer[verdict]  // why the launcher ends it, nil if it does not
	awaits atomic.Pointer[question] // the question that it waits with, nil for none

	cutShort bool  // set after the end: the order that ends all the work ended it
	inOrder  bool  // set after the end: it ended as it should
	watched  int64 // the drawn count when the watchdog was last fed
}

// verdict is why a session is ended.
type verdict struct {
	ending *ending // ends all the work; nil if another session may follow
	text   string  // why, if ending is nil
	asked  bool    // it waits for a person
	// stopped says that all the work ends by order.
	stopped bool
	over    *recovery.Over // the limit that its entry has reached, nil for none
}

func newSession(c *client.Client, size terminal.Size) *session {
	return &session{
		client: c, began: time.Now(), screen: screen.New(int(size.Rows), int(size.Cols)),
		over: make(chan struct{}), quit: make(chan struct{}),
	}
}

// name is the session's ID, "" before its hook has reported its start.
func (s *session) name() string {
	id, _ := s.id.Load().(string)
	return id
}

// end ends the session. The first verdict counts.
func (s *session) end(v verdict) {
	if s.why.CompareAndSwap(nil, &v) {
		close(s.quit)
	}
}

// ended returns why the launcher ended the session, the zero verdict if it did not.
func (s *session) ended() verdict { return *cmp.Or(s.why.Load(), &verdict{}) }

func (s *session) sight() screen.Sight { return s.client.Recognise(s.screen.Text()) }

func (s *session) printed(b []byte) {
	s.drawn.Add(1)
	s.asks.Store(false)
	_, _ = s.screen.Write(b) // never fails
}

// asking reports whether the session waits for a person.
func (s *session) asking() bool { return s.asks.Load() || s.awaits.Load() != nil }

// promptPatience is how long a session must sit at its prompt before it may end, if a person has entered a line: the
// client turns to that line once the entries are done.
const promptPatience = 3 * time.Second

// entered is what a person has entered at the session's terminal.
type entered struct {
	mu      sync.Mutex
	lines   bool        // at least one, since the session began
	waiting time.Time   // when the session came to its prompt, zero while it is elsewhere
	due     atomic.Bool // its hook has asked for its end, which a dialog keeps off
}

func (e *entered) noteLine() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines, e.waiting = true, time.Time{}
}

// mayEnd reports whether, as far as the screen shows, no line that a person entered still waits for its
// answer. The client queues such lines while it works on entries.
func (e *entered) mayEnd(sight screen.Kind) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	atPrompt := sight == screen.Ready || sight == screen.Unknown // an unknown program may be at its prompt
	switch {
	case !e.lines:
		return true
	case !atPrompt:
		e.waiting = time.Time{}
		e.due.Store(sight == screen.Dialog)
		return false
	case e.waiting.IsZero():
		e.waiting = now
	}
	return now.Sub(e.waiting) >= promptPatience
}

// listen lets people attach to the sessions, unless a person is already at the terminal. A failure
// is only logged: the work goes on without it.
func (r *run) listen() {
	if r.Attended {
		return
	}
	if err := r.attach.Listen(r.private.dir, r.sign.text); err != nil {
		r.Line(time.Now(), "nobody can attach to the sessions: "+err.Error())
		return
	}
	r.sign.setSocket(r.attach.Path(), r.AskPatience > 0)
}

func (r *run) attended() bool { return r.Attended || r.attach.Attended() }

// connect draws the session's output on its screen, has the terminal heed the person who sits at it,
// and lets people attach as soon as it is open.
func (r *run) connect(s *session, o *terminal.Options) {
	watch, resized := o.Watch, o.Resized
	o.Watch = func(b []byte) {
		s.printed(b)
		if watch != nil {
			watch(b)
		}
		r.attach.Drawn()
	}
	o.Resized = func(size terminal.Size) {
		s.screen.Resize(int(size.Rows), int(size.Cols))
		if resized != nil {
			resized(size)
		}
		r.attach.Drawn()
	}
	listens := r.attach.Path() != ""
	if r.Attended || listens {
		o.Entered = s.entered.noteLine
		o.Menu = func() bool { // a question may be answered with a line
			return !slices.Contains([]screen.Kind{screen.Unknown, screen.Busy, screen.Ready, screen.Question, screen.Login}, s.sight().Kind)
		}
		o.MayEnd = func() bool { return s.entered.mayEnd(s.sight().Kind) }
	}
	if !listens {
		return
	}
	own, sizes := o.Size, make(chan terminal.Size, 1)
	o.Sizes = sizes
	o.Opened = func(keys io.Writer) {
		r.attach.Begin(&sharing.Session{
			Screen: s.screen, Name: s.name,
			Type: func(b []byte) { _, _ = keys.Write(b) }, // fails once the session is over
			Resize: func(rows, cols int) { // calls do not overlap
				size := own
				if rows > 0 {
					size = terminal.Size{Rows: uint16(rows), Cols: uint16(cols)}
				}
				select {
				case <-sizes: // drops a size that nobody has read
				default:
				}
				sizes <- size
			},
		})
	}
}
