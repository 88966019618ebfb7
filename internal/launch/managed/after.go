package managed

import (
	"fmt"
	"time"

	"heartbeat/internal/launch/terminal"
	"heartbeat/internal/words"
)

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
	left := r.inFlight()
	r.early = left || !intended(s, o) || r.fruitless > 0
	switch {
	case !intended(s, o):
		r.Line(time.Now(), how(s, o))
	case left:
		r.Line(time.Now(), "the session was ended with an entry in flight: no hook has told that it was answered, so it counts as an orphan")
	}
	r.resume = ""
	if r.Resume && r.early {
		r.resume = s.name()
	}
	r.restBehind()
	if s.name() == "" && !s.resumed { // without a conversation to go on with it may start
		return r.neverStarted(s)
	}
	return nil
}

// neverStarted is about a session that has ended before it started, nil where
// another one may do better.
func (r *run) neverStarted(s *session) *ending {
	if e, known := r.notStarted(s, "the session ended before it started"); known {
		return e
	}
	if r.fruitless <= r.MaxRestarts || len(r.report.SessionIDs) > 0 {
		return nil
	}
	e, _ := r.notStarted(s, "no session started in "+words.Count(r.report.Sessions, "try", "tries"))
	return e
}

// intended reports an end that needs no word: the hook asked for it, or in print
// mode nothing was left.
func intended(s *session, o terminal.Outcome) bool {
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
