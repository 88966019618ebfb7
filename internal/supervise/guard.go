package supervise

import (
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/screen"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// hear acts on the events that the hooks of a session write.
func (r *run) hear(s *session) func(inbox.Event) {
	return func(e inbox.Event) {
		switch e.Event {
		case inbox.EventStarted:
			s.start(e.Session)
			r.sign.say("its session is " + words.Short(e.Session))
			r.service.ready()
		case inbox.EventFailed:
			s.failed.Store(true)
		case inbox.EventAsked:
			s.asks.Store(true)
			if r.EndAsking {
				r.asked(s, words.Brief(e.Reason))
			}
		}
	}
}

// lookEvery is how often a session is looked at.
const lookEvery = time.Second

// lookout is what guard knows of a session.
type lookout struct {
	*run
	s       *session
	drawn   int64 // the session's drawn count at the last look
	text    string
	sight   screen.Sight
	since   time.Time // when it was last seen doing its job
	up      bool      // it had started by the last look
	lost    time.Time // when the waiting hook was first seen gone, zero while it is there
	noticer noticer
}

// guard watches a session until it is over, and ends it if it makes no progress.
func (r *run) guard(s *session) {
	l := lookout{run: r, s: s, drawn: -1, since: time.Now(), noticer: noticer{Client: s.client, silent: r.Mode != Drain || r.Attended}}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-look.C:
		}
		before := l.sight
		if now := s.drawn.Load(); now != l.drawn {
			l.drawn, l.text = now, s.screen.Text()
			l.sight = s.client.Recognise(l.text)
		}
		if s.name() == "" {
			l.starts(before)
			continue
		}
		if !l.up {
			l.up, l.since = true, time.Now()
		}
		if r.Mode == Persist {
			l.isWoken()
		} else {
			l.works()
		}
		l.isInTime()
		l.isAnswered()
		if line := l.noticer.see(l.sight, l.text, s.worked.Load() || s.failed.Load(), time.Now()); line != "" {
			r.Line(time.Now(), line)
		}
	}
}

// starts ends a session that does not start.
func (l *lookout) starts(before screen.Sight) {
	old := l.Client.TooOld(l.text)
	switch {
	case old != "":
		l.s.end(verdict{ending: &ending{reason: SetUp, detail: old}})
	case l.attach.Attended(): // that person may be answering what it asks
		l.since = time.Now()
	case !l.Attended && !l.s.resumed && l.Client.Advise(l.sight).Matter != screen.Nothing && l.sight == before:
		l.s.end(l.late(l.s, "no session started")) // nobody is there to answer what it asks
	case time.Since(l.since) >= l.StartTimeout:
		l.s.end(l.late(l.s, "no session started within "+l.StartTimeout.String()+" (--start-timeout)"))
	}
}

// works ends a session that should drain the inbox but sits at its prompt: it was given no prompt,
// or its hook could not ask for the end.
func (l *lookout) works() {
	waits, over := l.waitsForTasks()
	switch {
	case over:
		l.s.end(verdict{text: "a task that an entry left running in the background has taken longer than " + l.Background.String() + " (--background-timeout)"})
	case waits || l.attended() || l.sight.Kind != screen.Ready:
		l.since = time.Now()
	case time.Since(l.since) >= l.StartTimeout:
		l.s.end(l.s.idle(l.StartTimeout))
	}
}

// waitsForTasks reports whether the entry in flight waits for tasks that its turn left in the
// background, and whether they have taken too long.
func (r *run) waitsForTasks() (waits, over bool) {
	_, flying := r.follow.counts()
	if flying == nil {
		return false, false
	}
	hold := recovery.EvidenceOf(flying).TaskWait
	return hold.Held, hold.Over(r.Background)
}

// idle is the verdict on a session that sits at its prompt.
func (s *session) idle(since time.Duration) verdict {
	if !s.worked.Load() && !s.failed.Load() {
		return verdict{ending: &ending{reason: SetUp, detail: "the session started and sits at its prompt: give the command " +
			"something to begin with, as in " + s.client.Begin}}
	}
	return verdict{text: "it has been sitting at its prompt for " + since.String() + ", and no hook asked for its end"}
}

// late is the verdict on a session that does not start. A known reason ends all the work, because
// the next session would meet it too.
func (r *run) late(s *session, what string) verdict {
	e, known := r.notStarted(s, what)
	if known {
		return verdict{ending: e}
	}
	return verdict{text: e.detail}
}

// notStarted says what keeps a session from starting. An unknown reason may go away by itself.
func (r *run) notStarted(s *session, what string) (e *ending, known bool) {
	text := s.screen.Text()
	sight := r.Client.Recognise(text)
	told := r.Client.Advise(sight)
	e = &ending{reason: SetUp}
	switch {
	case told.Matter != screen.Nothing:
		e.detail = fmt.Sprintf("%s: %s: %s", what, told.Cause, told.Fix)
		if told.Matter == screen.Authentication {
			e.reason = Authentication
		}
		return e, true
	case sight.Kind == screen.Ready || sight.Kind == screen.Busy:
		e.detail = fmt.Sprintf("%s: %s", what, r.Client.Unwired(r.given("")))
		return e, true
	}
	e.reason, e.detail = Exhausted, what+": the reason cannot be told from its screen"+lastLine(text)
	return e, false
}

// lastLine is the last line of a screen, as the end of a sentence.
func lastLine(text string) string {
	if last := words.Brief(screen.LastLine(text)); last != "" {
		return ", which ends with: " + last
	}
	return ", which is empty"
}

// isInTime ends a session whose entry has reached its time limit.
func (l *lookout) isInTime() {
	if _, d := l.follow.counts(); d != nil {
		if v := recovery.OverTime(d, l.Settings.Limits); v != nil {
			l.s.end(verdict{text: "its entry has reached its limit: " + v.Figures, over: v, seq: d.DeliveredSeq})
		}
	}
}

// waiterPatience is how long the session may take to end, or to start another waiting hook, after
// the waiting hook is gone.
const waiterPatience = 2 * time.Second

// isWoken ends a sleeping session that nothing can wake because its background hook was killed. It
// may sleep on while no entry waits.
func (l *lookout) isWoken() {
	w := l.follow.waitingHook()
	if w == nil && l.sleepsUnwatched() {
		if time.Since(l.since) >= l.StartTimeout {
			l.s.end(verdict{text: "an entry waits, and no hook that would wake it has for " + l.StartTimeout.String()})
		}
		return
	}
	l.since = time.Now()
	switch {
	case w == nil || !gone(w):
		l.lost = time.Time{}
	case l.lost.IsZero():
		l.lost = time.Now()
	case time.Since(l.lost) >= waiterPatience && entryUnserved(l.box):
		l.s.end(verdict{text: fmt.Sprintf("an entry waits, and the hook that would wake it is gone (process %d)", w.PID)})
	}
}

// sleepsUnwatched reports whether an entry waits in vain for a session that sits at its prompt with
// nobody typing: its hook was killed before it waited or before it woke the session. A missing
// waiter alone proves nothing, since none is on record during a turn.
func (l *lookout) sleepsUnwatched() bool {
	return !l.attended() && !l.s.asking() && l.sight.Kind == screen.Ready && entryUnserved(l.box)
}

func gone(w *inbox.Waiter) bool {
	alive, known := machine.Lives(w.Boot, w.Namespace, w.PID, w.ProcessStart)
	return known && !alive
}
