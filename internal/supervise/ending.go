package supervise

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claim"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/notify"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/words"
)

type ending struct {
	reason Reason
	detail string
	signal syscall.Signal
	logged bool // the log already has it
	shown  bool // something on disk already shows it to people
}

func (r *run) signalled(sig syscall.Signal) *ending {
	reason := Signalled
	if r.Warm && sig == syscall.SIGTERM {
		reason = Stopped
	}
	return &ending{reason: reason, signal: sig, detail: "this process got a signal: " + sig.String()}
}

const besideTime = 65 * time.Second // how long the launcher waits at its end for the work beside the sessions

// startBeside starts the work beside the sessions. end stops it and waits.
func (r *run) startBeside() (end func(), err error) {
	if r.Beside == nil {
		return func() {}, nil
	}
	stop, err := r.Beside(r.stop.asked, r.box)
	if err != nil {
		return nil, err
	}
	return func() {
		r.publish("it hands over what is left of the results")
		ctx, cancel := r.Terminal.Signals.Hurry(r.Terminal.Grace)
		defer cancel()
		ctx, over := context.WithTimeout(ctx, besideTime)
		defer over()
		stop(ctx)
	}, nil
}

const notifyTime = 45 * time.Second // how long the launcher stays at its end to notify a person

// hasEnded begins the sign of a launcher that has ended. Package see parses it.
const hasEnded = "has ended"

// lastWords returns the sign that the launcher leaves for later status queries: why it gave up.
func (e *ending) lastWords() string {
	if e.reason.needsPerson() || e.reason.isPassing() {
		return hasEnded + ": " + string(e.reason) + ": " + e.detail
	}
	return hasEnded
}

// LeaveWhy leaves, for later status queries, why a launcher ended before it could work on the
// inbox. If another launcher holds the inbox, that launcher's sign stays.
func LeaveWhy(path string, reason Reason, err error) {
	box, failed := inbox.Open(path, inbox.Options{})
	if failed != nil {
		return // the launcher's own error says it
	}
	lock, failed := claim.Take(box)
	if failed != nil {
		return
	}
	s := sign{lock: lock}
	s.say((&ending{reason: reason, detail: err.Error()}).lastWords())
	_ = lock.Release() // otherwise the kernel does
}

// notifyEnd notifies a person of what the last session left and why the work ends. People are notified
// anyway of pauses and of questions of runs, which are on disk.
func (r *run) notifyEnd(e *ending) {
	if !e.shown && (e.reason.needsPerson() || e.reason.isPassing() || e.reason == RunStuck) {
		r.notifier.Say(notify.Words{Reason: string(e.reason), Sentence: "heartbeat-launch has given up: " + string(e.reason) + ": " + e.detail})
	}
	ctx, cancel := r.Terminal.Signals.Hurry(r.Terminal.Grace)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, notifyTime)
	defer stop()
	r.notifier.Stop(ctx)
}

// Status is the exit status of a launcher that ends for this reason with nothing left to report. A signal has another.
func (r Reason) Status() int {
	switch r {
	case Drained, Quit, Stopped:
		return cli.ExitOK
	case TimedOut:
		return cli.ExitTimedOut
	case SetUp, Authentication, Refused:
		return cli.ExitPerson
	}
	return cli.ExitLater
}

func (r Reason) needsPerson() bool { return r.Status() == cli.ExitPerson }

// isPassing reports whether the reason keeps sessions from working and goes away by itself.
func (r Reason) isPassing() bool {
	return slices.Contains([]Reason{Trouble, Full, Exhausted}, r)
}

// ReasonOf returns the reason for an error that keeps the work from beginning. A person has to fix an error that is not known to pass.
func ReasonOf(err error) Reason {
	var busy claim.BusyError
	switch {
	case errors.As(err, &busy):
		return Busy
	case errors.Is(err, inbox.ErrFull), machine.TakesNothing(err) && !errors.Is(err, syscall.EROFS):
		return Full
	case machine.Passes(err), errors.Is(err, inbox.ErrLocked), errors.Is(err, context.DeadlineExceeded):
		return Trouble
	}
	return SetUp
}

// classify returns the reason for an error. Once a session has worked, the set-up was right, so an unknown
// error is taken to pass. A person has to mend settings that switch hooks off; only Persist waits for that.
func (r *run) classify(err error) Reason {
	reason := ReasonOf(err)
	rights := errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
	off := errors.Is(err, client.ErrHooksOff) && r.Mode == Drain
	missing := errors.Is(err, terminal.ErrNotFound) || errors.Is(err, terminal.ErrCannotRun)
	// An update may be replacing the client while a service starts, if earlier sessions have answered
	// entries of this inbox.
	replaced := missing && r.Mode == Persist && !r.Attended && r.before.Answered > 0
	if reason == SetUp && !rights && !off && (r.hasWorked() || replaced) {
		return Trouble
	}
	return reason
}

// hasWorked reports whether the hook of any session has reported its start.
func (r *run) hasWorked() bool { return len(r.report.SessionIDs) > 0 }

// stuck returns the ending for an error, nil for none, and counts a failed try.
func (r *run) stuck(err error) *ending {
	if err == nil {
		return nil
	}
	if e := r.stopped(); e != nil {
		return e
	}
	r.pace.fault()
	return &ending{reason: r.classify(err), detail: err.Error()}
}

// trouble is what currently keeps sessions from working.
type trouble struct {
	since    time.Time // zero: there is none
	cause    string
	notified []Reason // the reasons that a person was notified of
}

// notifyAfter is how long a passing trouble may last before a person is notified.
const notifyAfter = time.Minute

// mustNotify reports whether to notify a person of why, at most once.
func (t *trouble) mustNotify(why Reason, now time.Time) bool {
	if slices.Contains(t.notified, why) || !why.needsPerson() && now.Sub(t.since) < notifyAfter {
		return false
	}
	t.notified = append(t.notified, why)
	return true
}

// shouldRetry reports whether to retry after e. In Drain mode a reason that needs a person ends the work, and so do
// too many tries. In Persist mode only such a reason does, before any session has worked.
func (r *run) shouldRetry(e *ending) bool {
	person := e.reason.needsPerson()
	switch {
	case r.stop.asked.Err() != nil || !person && !e.reason.isPassing():
		return false
	case r.Mode == Drain && (person || r.pace.tries() > r.MaxRestarts):
		return false
	case r.Mode == Persist && person && !r.hasWorked():
		return false
	}
	r.publishTrouble(e)
	return true
}

// publishTrouble publishes what keeps sessions from working: in the log, in the status, and to a person.
func (r *run) publishTrouble(e *ending) {
	now := time.Now()
	if r.trouble.since.IsZero() {
		r.trouble.since = now
	}
	cause := string(e.reason) + ": " + e.detail
	if cause != r.trouble.cause {
		r.trouble.cause = cause
		text := cause + ": it is tried again, with rests of up to " + words.Took(mostRest)
		if !e.logged {
			r.Line(now, text)
		}
		if r.Terminal.Stdout != nil { // log lines are not shown there
			r.Terminal.Note("%s", text)
		}
	}
	if r.trouble.mustNotify(e.reason, now) {
		r.notifier.Say(notify.Words{Reason: string(e.reason), Sentence: "heartbeat-launch waits, and tries again: " + cause})
	}
	extendTimeout(time.Until(r.pace.notBefore) + startTime)
}
