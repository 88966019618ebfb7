package managed

import (
	"fmt"
	"time"

	recovery "heartbeat/recover"

	"heartbeat/internal/launch/terminal"
	"heartbeat/internal/words"
)

// runSession runs one session, and tells whether the work ends with it.
func (r *run) runSession() *ending {
	if !r.deadline.IsZero() && time.Until(r.deadline) <= 0 {
		return r.timedOut()
	}
	given := r.given(r.resume)
	command, err := r.Client.Command(r.ctx, given)
	if err != nil {
		return setUp(err)
	}
	r.report.Sessions++
	r.doing("it starts a session")
	r.asleep = time.Time{}
	if r.pace.early {
		r.report.Restarts++
	}
	s := newSession(r.Client, r.Terminal.Size)
	s.resumed, s.seq = r.resume != "", r.seq
	o := r.Terminal
	o.Command, o.Env, o.Quit = command, given.Env, s.quit
	o.Watch, o.Resized = s.watch(o.Watch), s.resize(o.Resized)
	o.Idle.Busy = func() bool { return entryInFlight(r.box) }
	if r.Attended {
		o.Typed, o.MayEnd = s.typed.keys, func() bool { return s.typed.mayEnd(s.sight().Kind) }
	}
	if !r.deadline.IsZero() {
		o.Timeout = time.Until(r.deadline)
	}
	r.follow.attach(s, r.hear(s))
	r.current.Store(s)
	go r.guard(s)
	go r.guardTime(s)
	go r.notice(s)
	outcome, err := terminal.Run(o)
	close(s.over)
	r.current.Store(nil)
	r.follow.look()
	r.follow.attach(nil, nil)
	r.last = s
	return r.after(s, outcome, err)
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

// quitByHand ends the work if a person ended the session at the terminal.
func (r *run) quitByHand(s *session, o terminal.Outcome) *ending {
	byHand := r.Attended && o.Cause == terminal.Ended && o.Status.Exited() && o.Status.ExitStatus() == 0 && s.name() != ""
	if !byHand {
		return nil
	}
	return &ending{reason: Quit, detail: "the session was ended at the terminal"}
}

// reckon counts what the session did, and sets when the next one may begin.
func (r *run) reckon(s *session, o terminal.Outcome) *ending {
	totals, err := readTotals(r.box)
	if err != nil {
		return r.stuck(err)
	}
	left := entryInFlight(r.box)
	r.pace.sessionEnded(totals.Answered-r.before.Answered, left || !intended(s, o))
	switch {
	case !intended(s, o):
		r.Line(time.Now(), how(s, o))
	case left:
		r.Line(time.Now(), "the session was ended with an entry in flight: no hook has told that it was answered, so it counts as an orphan")
	}
	r.resume = ""
	if e := r.checkSessionLimit(s); e != nil {
		return e
	}
	if r.Resume && r.pace.early && s.ended().over == nil && recovery.JudgeSession(r.Settings.Limits, r.spentBy(s)) == nil {
		r.resume = s.name()
	}
	if s.name() == "" && !s.resumed { // a session without the old conversation may start
		return r.neverStarted(s)
	}
	return nil
}

// neverStarted ends the work after a session that ended before it started, unless another
// one may do better.
func (r *run) neverStarted(s *session) *ending {
	if e, known := r.notStarted(s, "the session ended before it started"); known {
		return e
	}
	if r.pace.fruitless <= r.MaxRestarts || len(r.report.SessionIDs) > 0 {
		return nil
	}
	e, _ := r.notStarted(s, "no session started in "+words.Count(r.report.Sessions, "try", "tries"))
	return e
}

// intended reports whether the session ended as it should: the hook asked for it, or in
// print mode nothing was left.
func intended(s *session, o terminal.Outcome) bool {
	return o.Cause == terminal.Asked && !s.met(&s.failed) || o.Cause == terminal.Ended && o.Status.Exited() && o.Status.ExitStatus() == 0
}

// how says how a session ended that did not end as it should.
func how(s *session, o terminal.Outcome) string {
	switch {
	case s.ended().text != "":
		return "the session was ended: " + s.ended().text
	case o.Cause == terminal.GaveUp:
		return "the session was ended: it printed nothing for too long"
	case o.Cause == terminal.Asked:
		return "the session was ended after an error"
	case o.Status.Signaled():
		return fmt.Sprintf("the session was ended by signal %d (%v)", o.Status.Signal(), o.Status.Signal())
	}
	return fmt.Sprintf("the session ended with status %d%s", o.Status.ExitStatus(), s.lastWords())
}
