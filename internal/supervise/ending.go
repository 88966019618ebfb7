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
	"heartbeat/internal/machine"
	"heartbeat/internal/notify"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/words"
)

// ending is why the work ends.
type ending struct {
	reason Reason
	detail string
	signal syscall.Signal
	logged bool // a line has told of it
	shown  bool // something on the disk tells a person of it
}

func (r *run) signalled(sig syscall.Signal) *ending {
	reason := Signalled
	if r.Warm && sig == syscall.SIGTERM {
		reason = Stopped
	}
	return &ending{reason: reason, signal: sig, detail: "this process got a signal: " + sig.String()}
}

func (r *run) timedOut() *ending {
	return &ending{reason: TimedOut, detail: "the time was over (--timeout " + r.Terminal.Timeout.String() + ")"}
}

// besideTime is how long a launcher stays, at its end, for what works beside it.
const besideTime = 65 * time.Second

// beside starts what works beside the sessions, and returns what waits for its end.
func (r *run) beside() (end func(), err error) {
	if r.Beside == nil {
		return func() {}, nil
	}
	stop, err := r.Beside(r.stop.asked, r.box)
	if err != nil {
		return nil, err
	}
	return func() {
		r.doing("it hands over what is left of the results")
		ctx, cancel := r.Terminal.Signals.Hurry(r.Terminal.Grace)
		defer cancel()
		ctx, over := context.WithTimeout(ctx, besideTime)
		defer over()
		stop(ctx)
	}, nil
}

// tellTime is how long a launcher stays, at its end, until a person was told of what
// needs one.
const tellTime = 45 * time.Second

// hasEnded is what the sign of a launcher that has ended begins with: package see knows it.
const hasEnded = "has ended"

// lastWords are what the launcher leaves for whoever asks for the status later: why it gave up.
func (e *ending) lastWords() string {
	if e.reason.Person() || e.reason.passes() {
		return hasEnded + ": " + string(e.reason) + ": " + e.detail
	}
	return hasEnded
}

// LeaveWhy leaves for whoever asks for the status later why a launcher has ended that did not
// come to work on the inbox. Where another one does, that is what counts.
func LeaveWhy(path string, reason Reason, err error) {
	box, failed := inbox.Open(path, inbox.Options{})
	if failed != nil {
		return // the reason of the end says it
	}
	lock, failed := claim.Take(box)
	if failed != nil {
		return
	}
	s := sign{lock: lock}
	s.say((&ending{reason: reason, detail: err.Error()}).lastWords())
	_ = lock.Release() // otherwise the kernel does
}

// givesUp reports whether a person is to hear of an end. A pause and a run's question are on
// the disk, where others see them.
func (e *ending) givesUp() bool {
	return !e.shown && (e.reason.Person() || e.reason.passes() || e.reason == RunStuck)
}

// tell starts what tells a person. That it cannot is said, and keeps nobody from the work.
func (r *run) tell() {
	note := func(text string) { r.Line(time.Now(), text) }
	var err error
	if r.tells, err = notify.StartHelper(r.Notify, note); err != nil {
		note(err.Error())
	}
	r.tells.Follow(r.box.Path())
}

// tellEnd has a person told of what the last session left, and why the work ends.
func (r *run) tellEnd(e *ending) {
	if e.givesUp() {
		r.tells.Say(notify.Words{Reason: string(e.reason), Sentence: "heartbeat-launch has given up: " + string(e.reason) + ": " + e.detail})
	}
	ctx, cancel := r.Terminal.Signals.Hurry(r.Terminal.Grace)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, tellTime)
	defer stop()
	r.tells.Stop(ctx)
}

// Person reports whether somebody has to do something before the work can go on. Any other
// reason that leaves work may be over by the next try.
func (r Reason) Person() bool {
	return slices.Contains([]Reason{SetUp, Authentication, Refused}, r)
}

// passes reports whether it is a cause that keeps sessions from working and passes by itself.
func (r Reason) passes() bool {
	return slices.Contains([]Reason{Trouble, Full, Exhausted}, r)
}

// ReasonOf sorts an error that keeps the work from beginning. One that is not known to pass is
// somebody's to put right.
func ReasonOf(err error) Reason {
	var busy claim.BusyError
	switch {
	case errors.As(err, &busy):
		return Busy
	case errors.Is(err, inbox.ErrFull), machine.OutOfSpace(err):
		return Full
	case machine.Passes(err), errors.Is(err, inbox.ErrLocked), errors.Is(err, context.DeadlineExceeded):
		return Trouble
	}
	return SetUp
}

// sort sorts an error. Once a session has worked, what is not known is taken to pass: nothing
// of the set-up was wrong then.
func (r *run) sort(err error) Reason {
	reason := ReasonOf(err)
	rights := errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
	if reason == SetUp && !rights && (r.worked() || r.replaced(err)) {
		return Trouble
	}
	return reason
}

// worked reports whether a session has: its hook told of its start.
func (r *run) worked() bool { return len(r.report.SessionIDs) > 0 }

// replaced reports whether the client may be missing only because it is being updated, while
// a service starts: a session has worked through this inbox before.
func (r *run) replaced(err error) bool {
	missing := errors.Is(err, terminal.ErrNotFound) || errors.Is(err, terminal.ErrCannotRun)
	return missing && r.Mode == Persist && !r.Attended && r.before.Answered > 0
}

// stuck ends the work because of an error, if there is one.
func (r *run) stuck(err error) *ending {
	if err == nil {
		return nil
	}
	if e := r.stopped(); e != nil {
		return e
	}
	r.pace.fault()
	return &ending{reason: r.sort(err), detail: err.Error()}
}

// trouble is what keeps the sessions from working, for as long as it does.
type trouble struct {
	since time.Time // zero: there is none
	cause string
	told  []Reason // a person was, of these
}

// tellAfter is how long what passes by itself may last before a person is told.
const tellAfter = time.Minute

// tells reports whether a person is to be told of a cause now.
func (t *trouble) tells(why Reason, now time.Time) bool {
	if slices.Contains(t.told, why) || !why.Person() && now.Sub(t.since) < tellAfter {
		return false
	}
	t.told = append(t.told, why)
	return true
}

// waitsOut reports whether the work goes on. Persisting, only what a person must put right ends
// it, if no session has ever worked; draining, it is tried again as often as sessions may fail.
func (r *run) waitsOut(e *ending) bool {
	person := e.reason.Person()
	switch {
	case r.stop.asked.Err() != nil || !person && !e.reason.passes():
		return false
	case r.Mode == Drain && (person || r.pace.tries() > r.MaxRestarts):
		return false
	case r.Mode == Persist && person && !r.worked():
		return false
	}
	r.suffer(e)
	return true
}

// suffer says what keeps the sessions from working: in the log, to whoever asks for the status,
// and to a person.
func (r *run) suffer(e *ending) {
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
		if r.Terminal.Stdout != nil { // lines are not shown there
			r.Terminal.Note("%s", text)
		}
	}
	if r.trouble.tells(e.reason, now) {
		r.tells.Say(notify.Words{Reason: string(e.reason), Sentence: "heartbeat-launch waits, and tries again: " + cause})
	}
	r.service.extend(time.Until(r.pace.notBefore))
}
