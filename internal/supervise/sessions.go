package supervise

import (
	"fmt"
	"sync"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/words"
)

// runSession runs one session, and tells whether the work ends with it.
func (r *run) runSession() *ending {
	r.endRest()
	if err := r.ready(); err != nil {
		return r.stuck(err)
	}
	given := r.given(r.resume)
	command, err := r.Client.Command(r.stop.asked, given)
	if err != nil {
		return r.stuck(err)
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
	if r.SettingsDir == "" {
		o.Then.Remove = r.private.paths()
	}
	o.Idle.Busy = func() bool { return entryInFlight(r.box) }
	r.openTo(s, &o)
	if r.Attended || r.attach.Path() != "" {
		o.Entered, o.Menu = s.entered.line, s.menu
		o.MayEnd = func() bool { return s.entered.mayEnd(s.sight().Kind) }
	}
	o.Timeout = 0 // it is that of all sessions together
	r.follow.attach(s, r.hear(s))
	r.current.Store(s)
	// What runs beside the session may change the inbox: after its end it would undo what is
	// settled then, or be cut off amid a commit by the end of this process.
	var beside sync.WaitGroup
	for _, watch := range []func(*session){r.guard, r.endWarm} {
		beside.Go(func() { watch(s) })
	}
	outcome, err := r.inTerminal(o)
	r.attach.End("it is over")
	close(s.over)
	beside.Wait()
	r.current.Store(nil)
	r.follow.look()
	r.follow.attach(nil, nil)
	r.last = s
	return r.after(s, outcome, err)
}

// ready finds what a session needs, and that may go while a supervisor is up for weeks.
func (r *run) ready() error {
	if _, err := terminal.Find(r.Terminal); err != nil {
		return err
	}
	if there, err := disk.Exists(r.private.dir); there || err != nil || r.SettingsDir != "" {
		return err
	}
	made, err := makePrivate(r.box, r.sign.lock)
	if err == nil {
		r.private = made
	}
	return err
}

// after says what the end of a session means.
func (r *run) after(s *session, o terminal.Outcome, err error) *ending {
	if id := s.name(); id != "" {
		r.report.addSession(id)
	}
	s.cutShort = r.cutShort(s, o)
	switch e := r.stopped(); {
	case err != nil:
		return r.stuck(err)
	case e != nil:
		return e
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
	r.pace.sessionEnded(totals.Answered-r.before.Answered, left || !intended(s, o), r.Mode == Persist && time.Since(s.began) >= mostRest)
	r.bearWith(s)
	if s.name() != "" {
		r.trouble = trouble{} // what sessions do that started is on the disk, where others see it
	}
	r.resume = ""
	switch {
	case s.ended().ending != nil:
		return s.ended().ending
	case !intended(s, o):
		r.Line(time.Now(), how(s, o))
	case left:
		r.Line(time.Now(), "the session was ended with an entry in flight: no hook has told that it was answered, so it counts as an orphan")
	}
	if r.Resume && r.pace.early && s.ended().over == nil {
		r.resume = s.name()
	}
	if s.name() == "" && !s.resumed { // a session without the old conversation may start
		return r.neverStarted(s, o)
	}
	return nil
}

// neverStarted says why a session ended before it started. What is not known may pass.
func (r *run) neverStarted(s *session, o terminal.Outcome) *ending {
	what := "the session ended before it started"
	e, known := r.notStarted(s, what)
	if !known && r.Mode == Drain && !r.worked() && r.pace.fruitless > r.MaxRestarts {
		what = "no session started in " + words.Count(r.report.Sessions, "try", "tries")
		e, _ = r.notStarted(s, what)
	}
	if !known && o.Cause == terminal.Ended { // its status says more than an empty screen
		e.detail = what + ": " + how(s, o)
	}
	e.logged = !known
	return e
}

// intended reports whether the session ended as it should: the hook asked for it, or in
// print mode nothing was left.
func intended(s *session, o terminal.Outcome) bool {
	return o.Cause == terminal.Asked && !s.failed.Load() || o.Cause == terminal.Ended && o.Status.Exited() && o.Status.ExitStatus() == 0
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
