package supervise

import (
	"io"
	"time"

	"heartbeat/internal/screen"
	"heartbeat/internal/supervise/sharing"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/words"
)

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
