package supervise

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/internal/screen"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/sharing"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/words"
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

	mu  sync.Mutex
	id  string
	why *verdict // why the launcher ends it, nil if it does not
	// awaits is the question that the session waits with, nil for none.
	awaits *question

	cutShort bool  // set after the end: the order that ends all the work ended it
	inOrder  bool  // set after the end: it ended as it should
	watched  int64 // the drawn count at the watchdog's last look
}

// verdict is why a session is ended.
type verdict struct {
	ending *ending // ends all the work; nil if another session may follow
	text   string  // why, if ending is nil
	asked  bool    // it waits for a person
	// stopped says that all the work ends by order.
	stopped bool
	// over is the limit that the delivery with the number seq has reached, nil for none.
	over *recovery.Over
	seq  int64
}

func newSession(c *client.Client, size terminal.Size) *session {
	return &session{
		client: c, began: time.Now(), screen: screen.New(int(size.Rows), int(size.Cols)),
		over: make(chan struct{}), quit: make(chan struct{}),
	}
}

// sight is what its terminal shows.
func (s *session) sight() screen.Sight { return s.client.Recognise(s.screen.Text()) }

// lastWords returns, after a colon, what the program printed last before it gave up. A recognised
// screen is no such message.
func (s *session) lastWords() string {
	text := strings.TrimSpace(s.screen.Text())
	if text == "" || s.client.Recognise(text) != (screen.Sight{}) {
		return ""
	}
	return ": " + words.Brief(s.client.LastWords(text))
}

func (s *session) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// start notes the session that a hook reported. `/clear` changes its ID.
func (s *session) start(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = id
}

// end ends the session. The first verdict counts.
func (s *session) end(v verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil {
		s.why = &v
		close(s.quit)
	}
}

// ended returns why the launcher ended the session, empty if it did not.
func (s *session) ended() verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil {
		return verdict{}
	}
	return *s.why
}

// watch draws the session's output on its screen and passes it to next.
func (s *session) watch(next func([]byte)) func([]byte) {
	return func(b []byte) {
		s.drawn.Add(1)
		s.asks.Store(false)
		_, _ = s.screen.Write(b) // never fails
		if next != nil {
			next(b)
		}
	}
}

// resize keeps the screen at the terminal's size and passes the size to next.
func (s *session) resize(next func(terminal.Size)) func(terminal.Size) {
	return func(size terminal.Size) {
		s.screen.Resize(int(size.Rows), int(size.Cols))
		if next != nil {
			next(size)
		}
	}
}

// promptPatience is how long a session must sit at its prompt before it may end, if a person
// has entered something: the client turns to that once the entries are done.
const promptPatience = 3 * time.Second

// entered is what a person has entered at the session's terminal.
type entered struct {
	mu    sync.Mutex
	lines bool // at least one, since the session began
	// waiting is when the session came to its prompt, zero while it is elsewhere.
	waiting time.Time
}

// line notes that a line was entered.
func (e *entered) line() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines, e.waiting = true, time.Time{}
}

// mayEnd reports whether the session may be ended: as far as the screen shows, no line that a person
// entered still waits for its answer. The client queues such lines while it works on entries.
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
		return false
	case e.waiting.IsZero():
		e.waiting = now
	}
	return now.Sub(e.waiting) >= promptPatience
}

// menu reports whether the session asks for a single key. A question may be answered with a line.
func (s *session) menu() bool {
	return !slices.Contains([]screen.Kind{screen.Unknown, screen.Busy, screen.Ready, screen.Question, screen.Login}, s.sight().Kind)
}

// promptless is how long a session that was given a prompt may sit at its input line before the
// first turn begins.
const promptless = 5 * time.Second

// noticer reports what only the screen shows, or shows before any hook reports it.
type noticer struct {
	*client.Client
	cause  string    // the error reported last, "" for none
	idle   time.Time // when the prompt appeared, zero while it is not there
	begun  bool      // a turn has begun
	silent bool      // say nothing about a prompt
}

// see returns what to say about a screen, "" for nothing.
func (n *noticer) see(sight screen.Sight, text string, worked bool, now time.Time) string {
	n.begun = n.begun || worked || sight.Kind == screen.Busy
	if sight.Kind != screen.Ready {
		n.idle = time.Time{}
	} else if n.idle.IsZero() {
		n.idle = now
	}
	if retry, ok := n.Retrying(text); ok {
		if retry.Cause == n.cause {
			return ""
		}
		n.cause = retry.Cause
		says := "says " + words.Brief(retry.Cause)
		if retry.Cause == "API error" { // the client's own words
			says = "answers with an error"
		}
		return fmt.Sprintf("the model's API %s, try %s of %s", says, retry.Try, retry.Most)
	}
	if sight.Kind == screen.Ready {
		n.cause = ""
	}
	if n.silent || n.begun || n.idle.IsZero() || now.Sub(n.idle) < promptless {
		return ""
	}
	n.silent = true
	return "the session sits at its prompt, as one does that was given none: give the command something to begin with, as in " + n.Begin
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
	r.sign.reachedAt(r.attach.Path(), r.AskPatience > 0)
}

func (r *run) attended() bool { return r.Attended || r.attach.Attended() }

// openTo lets people attach to a session as soon as its terminal is open.
func (r *run) openTo(s *session, o *terminal.Options) {
	if r.attach.Path() == "" {
		return
	}
	own, sizes := o.Size, make(chan terminal.Size, 1)
	o.Sizes = sizes
	o.Opened = func(keys io.Writer) {
		r.attach.Begin(&sharing.Session{
			Screen: s.screen, Name: s.name,
			Type: func(b []byte) { _, _ = keys.Write(b) }, // fails once the session is over
			Resize: func(rows, cols int) {
				if size := (terminal.Size{Rows: uint16(rows), Cols: uint16(cols)}); rows > 0 {
					newest(sizes, size)
				} else {
					newest(sizes, own)
				}
			},
		})
	}
	watch, resized := o.Watch, o.Resized
	o.Watch = func(b []byte) { watch(b); r.attach.Drawn() }
	o.Resized = func(size terminal.Size) { resized(size); r.attach.Drawn() }
}

// newest replaces a size that nobody has taken yet. Calls must not overlap.
func newest(sizes chan terminal.Size, size terminal.Size) {
	select {
	case <-sizes:
	default:
	}
	sizes <- size
}

// question is what a session asks a person.
type question struct {
	reason string
	since  time.Time
	alone  time.Time // when the last attached person left
	told   bool      // the log says that the session waits
}

// asking reports whether the session waits for a person.
func (s *session) asking() bool { return s.asks.Load() || s.question() != nil }

func (s *session) question() *question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.awaits
}

// await records the question that the session waits with; nil clears it.
func (s *session) await(q *question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaits = q
}

// asked ends a session that waits for a person, unless somebody is attached or may come.
func (r *run) asked(s *session, reason string) {
	switch now := time.Now(); {
	case r.AskPatience <= 0 && !r.attach.Attended():
		s.endAsking(reason)
	case s.question() == nil:
		s.await(&question{reason: reason, since: now, alone: now})
	}
}

func (s *session) endAsking(reason string) {
	s.end(verdict{asked: true, text: "it waits for a person, and nobody is there: " + reason})
}

// isAnswered ends a session whose question nobody answers within AskPatience. The client reports an
// answer only at the end of the turn, so typed input counts as one once the screen no longer asks.
func (l *lookout) isAnswered() {
	q := l.s.question()
	switch {
	case q == nil:
	case l.attach.TypedSince(q.since) && !asksOnScreen(l.sight.Kind):
		l.s.await(nil)
	case l.attach.Attended():
		q.alone = time.Now()
	case time.Since(q.alone) >= l.AskPatience:
		l.s.endAsking(q.reason)
	case !q.told:
		q.told = true
		l.Line(q.since, "the session waits for somebody who answers it, for "+l.AskPatience.String()+" (--ask-patience): "+words.Shell("heartbeat", "attach", "--inbox", l.box.Path()))
	}
}

func asksOnScreen(kind screen.Kind) bool {
	return kind == screen.Permission || kind == screen.Question || kind == screen.Dialog
}

// reachedAt publishes the socket to attach to ("" for none), and whether a session that asks waits
// for an answer.
func (s *sign) reachedAt(socket string, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.socket, s.waits = socket, ""
	if waits && socket != "" {
		s.waits = "waits"
	}
}
