package supervise

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/command/history"
	"heartbeat/internal/screen"
	"heartbeat/internal/see"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// creditTo returns the observer that credits events of the inbox to a session. Others report there, too: a person's in
// the same project.
func (r *run) creditTo(s *session) func(history.Event) {
	return func(e history.Event) {
		switch kind := inbox.EventKind(e.Event); {
		case kind == inbox.EventStarted:
			known, _ := fromView(r.box, func(v *inbox.View) (inbox.Session, error) { return v.In(e.SessionID).Known(), nil })
			if _, _, outside := agent.StartOf(known.StartNote); !outside { // also one of which nothing is known
				s.id.Store(e.SessionID)
				r.signSession(e.SessionID, "")
				r.service.ready()
			}
		case e.SessionID != s.name():
		case kind == history.Delivered:
			s.worked.Store(true)
		case kind == inbox.EventFailed:
			s.failed.Store(true)
		case kind == inbox.EventAsked:
			r.onQuestion(s, words.Brief(e.Reason))
		}
	}
}

// signSession signs which session runs, and which error of the model's API it retries, "" for none.
func (r *run) signSession(id, apiError string) {
	switch text := "its session is " + words.Short(id); {
	case id == "", r.stopped() != nil: // then the sign says how it ends
	case apiError != "":
		r.sign.say(text + see.Retries + apiError)
	default:
		r.sign.say(text)
	}
}

// onQuestion ends a session that asks a person, unless somebody is there or may come.
func (r *run) onQuestion(s *session, reason string) {
	s.asks.Store(true)
	switch now := time.Now(); {
	case r.Attended:
	case r.AskPatience <= 0 && !r.attach.Attended():
		s.endAsking(reason)
	case s.awaits.Load() == nil:
		s.awaits.Store(&question{reason: reason, since: now, alone: now})
	}
}

// reportDelay is how long a client may show a question before its hook reports it.
const reportDelay = 10 * time.Second

type lookout struct {
	*run
	s       *session
	drawn   int64 // the session's drawn count at the last check
	text    string
	sight   screen.Sight
	since   time.Time // when it was last seen doing its job
	up      bool      // it had started by the last check
	lost    time.Time // when the waiting hook was first seen gone, zero while it is there
	free    time.Time // when the screen last asked nothing in vain, or somebody was there to answer
	shown   time.Time // when the screen last began to ask
	asks    bool      // the screen asked at the last check
	noticer noticer
	retries string // what the sign says that the client retries
}

// guard watches a session until it is over, and ends it if it makes no progress.
func (r *run) guard(s *session) {
	l := lookout{run: r, s: s, drawn: -1, since: time.Now(), free: time.Now(), noticer: noticer{Client: s.client, silent: r.Mode != Drain || r.Attended}}
	for look := time.Tick(time.Second); ; {
		select {
		case <-s.over:
			return
		case <-look:
			_ = r.lost() // ends the session
		}
		before := l.sight
		if now := s.drawn.Load(); now != l.drawn {
			l.drawn, l.text = now, s.screen.Text()
			l.sight = s.client.Recognise(l.text)
		}
		if s.name() == "" {
			l.checkStart(before)
			continue
		}
		if !l.up {
			l.up, l.since = true, time.Now()
		}
		if r.Mode == Persist {
			l.checkWaker()
		} else {
			l.checkDraining()
		}
		if d := r.follow.last().inFlight; d != nil {
			if v := recovery.OverTime(d, r.Settings.Limits); v != nil {
				s.end(verdict{text: "its entry has reached its limit: " + v.Figures, over: v})
			}
		}
		l.checkQuestion()
		if line := l.noticer.notice(l.sight, l.text, s.worked.Load() || s.failed.Load(), time.Now()); line != "" {
			r.Line(time.Now(), line)
		}
		if now := l.noticer.apiError; now != l.retries {
			l.retries = now
			r.signSession(s.name(), now)
		}
	}
}

// checkStart ends a session that does not start. A known reason ends all the work: the next session meets it, too.
func (l *lookout) checkStart(before screen.Sight) {
	old, late := l.Client.TooOld(l.text), ""
	switch {
	case old != "":
		l.s.end(verdict{ending: &ending{reason: SetUp, detail: old}})
	case l.attach.Attended(): // that person may be answering what it asks
		l.since = time.Now()
	case !l.Attended && !l.s.resumed && l.Client.Advise(l.sight).Matter != screen.Nothing && l.sight == before:
		late = "no session started" // nobody is there to answer what it asks
	case time.Since(l.since) >= l.StartTimeout:
		late = "no session started within " + l.StartTimeout.String() + " (--start-timeout)"
	}
	if late == "" {
		return
	}
	if e, known := l.notStarted(l.s, late); known {
		l.s.end(verdict{ending: e})
	} else {
		l.s.end(verdict{text: e.detail})
	}
}

// checkDraining ends a draining session that sits at its prompt: it was given none, or its hook could not ask for the end.
func (l *lookout) checkDraining() {
	var tasks recovery.TaskWait // of the entry in flight
	if flying := l.follow.last().inFlight; flying != nil {
		tasks = recovery.EvidenceOf(flying).TaskWait
	}
	switch {
	case tasks.Over(l.Background):
		l.s.end(verdict{text: "a task that an entry left running in the background has taken longer than " + l.Background.String() + " (--background-timeout)"})
	case tasks.Held || l.attended() || l.sight.Kind != screen.Ready:
		l.since = time.Now()
	case time.Since(l.since) < l.StartTimeout:
	case !l.s.worked.Load() && !l.s.failed.Load():
		l.s.end(verdict{ending: &ending{reason: SetUp, detail: "the session started and sits at its prompt: give the command " +
			"something to begin with, as in " + l.s.client.Begin + ", or look which hook of the project refuses its prompt"}})
	default:
		l.s.end(verdict{text: "it has been sitting at its prompt for " + l.StartTimeout.String() + ", and no hook asked for its end"})
	}
}

// notStarted returns what keeps a session from starting. An unknown reason may go away by itself.
func (r *run) notStarted(s *session, what string) (e *ending, known bool) {
	text := s.screen.Text()
	sight := r.Client.Recognise(text)
	advice := r.Client.Advise(sight)
	e = &ending{reason: SetUp}
	switch {
	case advice.Matter != screen.Nothing:
		e.detail = fmt.Sprintf("%s: %s: %s", what, advice.Cause, advice.Fix)
		if advice.Matter == screen.Authentication {
			e.reason = Authentication
		}
		return e, true
	case sight.Kind == screen.Ready || sight.Kind == screen.Busy:
		e.detail = fmt.Sprintf("%s: %s", what, r.Client.Unwired(r.clientSession("")))
		return e, true
	}
	e.reason, e.detail = Exhausted, what+": the reason cannot be told from its screen, which is empty"
	if last := words.Brief(r.Client.LastWords(text)); last != "" {
		e.detail = what + ": the reason cannot be told from its screen, which ends with: " + last
	}
	return e, false
}

// waiterPatience is how long the session may take to end or to start another waiting hook, once its waiting hook is gone.
const waiterPatience = 2 * time.Second

// checkWaker ends a session that sits at its prompt while an entry waits and nothing can wake it, since its background
// hook was killed; or while an entry is in flight, since a hook refused its prompt, or somebody pressed Esc and left.
func (l *lookout) checkWaker() {
	w := l.follow.last().waiter
	// The hook was killed before it waited or woke the session if an entry waits in vain for a session that sits at its prompt
	// with nobody typing. A missing waiter alone proves nothing, since none is on record during a turn.
	if w == nil && !l.attended() && !l.s.asking() && l.sight.Kind == screen.Ready && hasUnserved(l.box, true) {
		if time.Since(l.since) >= l.StartTimeout {
			l.s.end(verdict{text: "an entry waits or is in flight, and for " + l.StartTimeout.String() + " it has been sitting at its prompt, with no hook that would wake it"})
		}
		return
	}
	l.since = time.Now()
	switch {
	case w == nil || !w.Life().Ended():
		l.lost = time.Time{}
	case l.lost.IsZero():
		l.lost = time.Now()
	case time.Since(l.lost) >= waiterPatience && hasUnserved(l.box, false):
		l.s.end(verdict{text: fmt.Sprintf("an entry waits, and the hook that would wake it is gone (process %d)", w.PID)})
	}
}

type question struct {
	reason string
	since  time.Time
	alone  time.Time // when the last attached person left
	logged bool      // the log says that the session waits
}

func (s *session) endAsking(reason string) {
	s.end(verdict{asked: true, text: "it waits for a person, and nobody is there: " + reason})
}

// inVain reports whether an open dialog holds the session up. Beneath a dialog that somebody has opened, a client works
// on, but takes up no prompt and cannot end. Hooks report what Claude Code itself asks.
func (l *lookout) inVain() bool {
	switch {
	case l.sight.Kind != screen.Dialog, l.s.client.Mute && !l.attach.TypedSince(l.s.began):
		return true // the turn itself asks
	case l.Mode == Persist:
		return l.follow.last().inFlight != nil && hasUnserved(l.box, false)
	}
	return l.s.entered.due.Load()
}

// checkQuestion ends a session whose question, or dialog that somebody opened and left, nobody answers in AskPatience.
// The client reports an answer only at the end of the turn, so typed input counts as one once the screen no longer asks.
func (l *lookout) checkQuestion() {
	asks := slices.Contains([]screen.Kind{screen.Permission, screen.Question, screen.Dialog}, l.sight.Kind)
	if !asks || l.attended() || !l.inVain() {
		l.free = time.Now()
	}
	if asks && !l.asks {
		l.shown = time.Now()
	}
	l.asks = asks
	switch q := l.s.awaits.Load(); {
	case q == nil && asks && (l.s.client.Mute && l.sight.Kind == screen.Permission || time.Since(l.free) >= l.StartTimeout):
		l.onQuestion(l.s, l.s.client.Advise(l.sight).Cause)
	case q == nil:
	case !asks && (l.attach.TypedSince(q.since) || q.since.Sub(l.shown) < reportDelay && l.attach.TypedSince(l.shown)):
		l.s.awaits.Store(nil)
		l.record(func(in inbox.InSession) error { in.StopAsking(); return nil })
	case l.attach.Attended():
		q.alone = time.Now()
	case time.Since(q.alone) >= l.AskPatience:
		l.s.endAsking(q.reason)
	case !q.logged:
		q.logged = true
		l.Line(q.since, "the session waits for somebody who answers it, for "+l.AskPatience.String()+" (--ask-patience): "+words.Shell("heartbeat", "attach", "--inbox", l.box.Path()))
		l.record(func(in inbox.InSession) error { return in.Ask("permission_prompt", q.reason) })
	}
}

// record notes what the client reports to no hook, for status and --notify.
func (l *lookout) record(note func(inbox.InSession) error) {
	if !l.s.client.Mute {
		return
	}
	tx, err := l.box.Begin(l.stop.over)
	if err == nil {
		err = errors.Join(note(tx.In(l.s.name())), tx.Commit(), tx.Close())
	}
	if err != nil {
		l.Line(time.Now(), "whether the session waits for somebody is not recorded: "+err.Error())
	}
}

// promptless is how long a session that was given a prompt may sit at its input line before the first turn begins.
const promptless = 5 * time.Second

// noticer reports what only the screen shows, or shows before any hook reports it.
type noticer struct {
	*client.Client
	cause string // the error reported last, "" for none
	// apiError is what the client retries on the screen, "" for nothing.
	apiError string
	idle     time.Time // when the prompt appeared, zero while it is not there
	begun    bool      // a turn has begun
	silent   bool      // say nothing about a prompt
}

// notice returns a line for the log about a screen, "" for none.
func (n *noticer) notice(sight screen.Sight, text string, worked bool, now time.Time) string {
	n.begun = n.begun || worked || sight.Kind == screen.Busy
	if sight.Kind != screen.Ready {
		n.idle = time.Time{}
	} else if n.idle.IsZero() {
		n.idle, n.cause = now, ""
	}
	retry, ok := n.Retrying(text)
	n.apiError = ""
	if ok {
		says := "says " + words.Brief(retry.Cause)
		if retry.Cause == "API error" { // the client's own words
			says = "answers with an error"
		}
		n.apiError = fmt.Sprintf("the model's API %s, try %s of %s", says, retry.Try, retry.Most)
		if retry.Cause == n.cause {
			return ""
		}
		n.cause = retry.Cause
		return n.apiError
	}
	if n.silent || n.begun || n.idle.IsZero() || now.Sub(n.idle) < promptless {
		return ""
	}
	n.silent = true
	return "the session sits at its prompt, perhaps since it was given none: give the command something to begin with, as in " + n.Begin
}
