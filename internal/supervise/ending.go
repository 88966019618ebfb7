package supervise

import (
	"context"
	"syscall"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claim"
	"heartbeat/internal/notify"
)

// ending is why the work ends.
type ending struct {
	reason Reason
	detail string
	signal syscall.Signal
	final  bool // no other session is tried, whatever has worked before
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
	r.tells.Follow(r.box.Path(), "heartbeat-launch")
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
