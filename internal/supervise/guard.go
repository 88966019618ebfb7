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

// hear acts on what the hooks of a session tell.
func (r *run) hear(s *session) func(inbox.Event) {
	return func(e inbox.Event) {
		switch e.Event {
		case inbox.EventStarted:
			s.start(e.Session)
			r.sign.say("its session is " + words.Short(e.Session))
			r.service.ready()
		case inbox.EventFailed:
			s.note(&s.failed)
		case inbox.EventAsked:
			s.asks.Store(true)
			if r.EndAsking {
				r.asked(s, words.Brief(e.Reason))
			}
		}
	}
}

// lookEvery is how often a session is looked at: the screen of one that has not started yet
// or was given nothing to do, and the time that its entry takes.
const lookEvery = time.Second

// guard ends a session that does not start.
func (r *run) guard(s *session) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	timeout := time.NewTimer(r.StartTimeout)
	defer timeout.Stop()
	var before screen.Sight
	for {
		select {
		case <-s.started:
			if r.Mode == Persist {
				r.guardWaiter(s)
				return
			}
			r.guardIdle(s, look)
			return
		case <-s.over:
			return
		case <-timeout.C:
			if r.attach.Attended() { // who may be answering what it asks
				timeout.Reset(r.StartTimeout)
				continue
			}
			s.end(r.late(s, "no session started within "+r.StartTimeout.String()+" (--start-timeout)"))
			return
		case <-look.C:
			text := s.screen.Text()
			if old := r.Client.TooOld(text); old != "" {
				s.end(verdict{ending: &ending{reason: SetUp, detail: old}})
				return
			}
			// Nobody is there to answer what it asks.
			now := r.Client.Recognise(text)
			if !r.attended() && !s.resumed && r.Client.Advise(now).Matter != screen.Nothing && now == before {
				s.end(r.late(s, "no session started"))
				return
			}
			before = now
		}
	}
}

// guardIdle ends a session that should drain the inbox and sits at its prompt instead:
// it was given no prompt, or its hook could not ask for the end.
func (r *run) guardIdle(s *session, look *time.Ticker) {
	if r.Mode != Drain {
		return
	}
	var sight screen.Sight
	drawn, idleSince := int64(-1), time.Now()
	for {
		select {
		case <-s.over:
			return
		case <-look.C:
		}
		if waits, over := r.waitsForTasks(); over {
			s.end(verdict{text: "a task that an entry left running in the background has taken longer than " + r.Background.String() + " (--background-timeout)"})
			return
		} else if waits || r.attended() {
			idleSince = time.Now()
			continue
		}
		if now := s.drawn.Load(); now != drawn {
			drawn, sight = now, s.sight()
		}
		switch {
		case sight.Kind != screen.Ready:
			idleSince = time.Now()
		case time.Since(idleSince) >= r.StartTimeout:
			s.end(s.idle(r.StartTimeout))
			return
		}
	}
}

// waitsForTasks reports whether the entry in flight waits for tasks that its turn left
// in the background, and whether it has waited too long.
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.worked && !s.failed {
		return verdict{ending: &ending{reason: SetUp, detail: "the session started and sits at its prompt: give the command " +
			"something to begin with, as in " + s.client.Begin}}
	}
	return verdict{text: "it has been sitting at its prompt for " + since.String() + ", and no hook asked for its end"}
}

// late ends a session that does not start. A known reason ends all the work: the next
// session would meet it too.
func (r *run) late(s *session, what string) verdict {
	e, known := r.notStarted(s, what)
	if known {
		return verdict{ending: e}
	}
	return verdict{text: e.detail}
}

// notStarted says what keeps a session from starting. An unknown reason may pass.
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

// guardTime ends a session whose entry has reached its limit of time. Its hook does so
// between two requests; one that takes long, or a tool, it cannot end.
func (r *run) guardTime(s *session) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-look.C:
		}
		_, d := r.follow.counts()
		if d == nil {
			continue
		}
		l := recovery.LimitsOf(d, r.Settings.Limits)
		if l.Entry.Time == 0 {
			continue
		}
		if v := recovery.Judge(l, recovery.Spent{Took: recovery.Took(d)}, d.Attempt); v != nil {
			s.end(verdict{text: "its entry has reached its limit: " + v.Figures, over: v, seq: d.DeliveredSeq})
			return
		}
	}
}

const (
	// waiterPatience is how long the session may take to end, or to start another hook
	// that waits, once the one that waited is gone.
	waiterPatience = 2 * time.Second
	// waiterPoll is how often the inbox is looked at while no hook waits: a pause and a
	// back-off end without an event.
	waiterPoll = 5 * time.Second
)

// guardWaiter ends a session that sleeps and that nothing would wake, since its hook in
// the background was killed. As long as no entry waits, it may sleep on.
func (r *run) guardWaiter(s *session) {
	var name string // of the hook that waits
	var died <-chan struct{}
	var lost time.Time // when it died
	served := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-r.follow.turned:
		case <-timer.C:
		case <-died:
			died, lost = nil, time.Now()
			timer.Reset(waiterPatience)
			continue
		}
		w := r.follow.waitingHook()
		switch {
		case w == nil:
			name, died = "", nil
			timer.Reset(waiterPoll)
			if !r.sleepsUnwatched(s) {
				served = time.Now()
			} else if time.Since(served) >= r.StartTimeout {
				s.end(verdict{text: "an entry waits, and no hook that would wake it has for " + r.StartTimeout.String()})
				return
			}
		case w.Name != name:
			name, died = w.Name, deathOf(w)
			served = time.Now()
		case died == nil && gone(w) && time.Since(lost) >= waiterPatience:
			if entryUnserved(r.box) {
				s.end(verdict{text: fmt.Sprintf("an entry waits, and the hook that would wake it is gone (process %d)", w.PID)})
				return
			}
			timer.Reset(waiterPoll)
		}
	}
}

// sleepsUnwatched reports whether an entry waits in vain for a session at its prompt,
// where nobody types: its hook was killed before it waited, or before it woke the
// session. That no hook is on record as waiting does not tell, since none is during a
// turn.
func (r *run) sleepsUnwatched(s *session) bool {
	return !r.attended() && !s.asking() && s.sight().Kind == screen.Ready && entryUnserved(r.box)
}

// deathOf is closed when the process that waits dies. It is nil where that process cannot
// be told from another one of the same number.
func deathOf(w *inbox.Waiter) <-chan struct{} {
	if _, known := machine.Lives(w.Boot, w.Namespace, w.PID, w.ProcessStart); !known {
		return nil
	}
	died := make(chan struct{})
	process := machine.WatchProcess(w.PID)
	if gone(w) { // before it was watched, and its number may be another's by now
		close(died)
		return died
	}
	return process.Died()
}

// gone reports whether the process that waited is certain to be gone.
func gone(w *inbox.Waiter) bool {
	alive, known := machine.Lives(w.Boot, w.Namespace, w.PID, w.ProcessStart)
	return known && !alive
}
