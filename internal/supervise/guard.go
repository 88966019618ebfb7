package supervise

import (
	"fmt"
	"time"

	"heartbeat/inbox"
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
