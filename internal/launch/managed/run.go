package managed

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// run is the work of one launcher on one inbox.
type run struct {
	Options
	box     *inbox.Inbox
	report  Report
	before  inbox.Totals
	follow  *follower
	service *service
	private *private
	current atomic.Pointer[session] // nil between two
	sign    sign
	ctx     context.Context // done once this launcher is to end

	deadline time.Time // zero: none
	seq      int64     // the number of the next commit to the inbox, when it was settled last
	last     *session  // the one that has ended and was not settled yet
	resume   string    // the conversation that the next session goes on with
	early    bool      // the last session ended too early
	// fruitless counts the sessions since an entry was answered.
	fruitless int
	answered  int64     // by the sessions so far
	notBefore time.Time // when the next session may begin
	asleep    time.Time // until when the runs need not be looked at
}

// ending is why the work ends.
type ending struct {
	reason Reason
	detail string
	signal syscall.Signal
}

// lockWait is how long the inbox's own lock may be held by somebody else.
const lockWait = 30 * time.Second

// Run works through the inbox, until it is drained or something keeps the work
// from going on, and says how that went.
func Run(o Options) *Report {
	r := &run{Options: o}
	r.report = Report{Inbox: o.Inbox, Mode: o.Mode, Queued: -1, StartedAt: time.Now().UTC()}
	if o.Terminal.Timeout > 0 {
		r.deadline = time.Now().Add(o.Terminal.Timeout)
	}
	var cancel context.CancelFunc
	r.ctx, cancel = o.Terminal.Signals.Context()
	defer cancel()
	e := r.work()
	if sig, _ := o.Terminal.Signals.Signal(); sig != 0 {
		e = signalled(sig) // whatever it kept from being done
	}
	r.report.Reason, r.report.Detail, r.report.Signal = e.reason, e.detail, e.signal
	r.report.EndedAt = time.Now().UTC()
	r.report.Wall = r.report.EndedAt.Sub(r.report.StartedAt).Seconds()
	return &r.report
}

// setUp ends the work because of something that only a person can mend.
func setUp(err error) *ending { return &ending{reason: SetUp, detail: err.Error()} }

// work does all of it while the inbox is this launcher's.
func (r *run) work() *ending {
	var err error
	if r.box, err = inbox.Open(r.Inbox, inbox.Options{LockWait: lockWait, Adopt: r.Adopt}); err != nil {
		return setUp(err)
	}
	r.report.Inbox = r.box.Path()
	lock, err := lockInbox(r.box)
	var busy busyError
	switch {
	case errors.As(err, &busy):
		return &ending{reason: Busy, detail: busy.Error()}
	case err != nil:
		return setUp(err)
	}
	defer func() { _ = lock.Release() }() // the kernel does otherwise
	r.sign.lock = lock
	defer r.sign.say("has ended")
	if err := r.checkRights(); err != nil {
		return setUp(err)
	}
	if r.private, err = r.makePrivate(lock); err != nil {
		return setUp(err)
	}
	warnings, err := r.box.MoveForeignAside(context.Background())
	if err != nil {
		return setUp(err)
	}
	for _, w := range warnings {
		r.Line(time.Now(), w)
	}
	defer r.private.remove()
	if r.Terminal.ExitSignal == "" {
		r.Terminal.ExitSignal = filepath.Join(r.box.Dir(), ".exit-signal")
	}
	if err := r.checkFree(); err != nil {
		return r.stuck(err)
	}
	if r.before, err = r.totals(); err != nil {
		return setUp(err)
	}
	if r.follow, err = follow(r.box, r.Line); err != nil {
		return setUp(err)
	}
	if r.Resume {
		r.resume = r.orphan()
	}
	r.service = announce(r)
	r.follow.begin(r.service.poke)
	e := r.loop()
	r.conclude(e)
	r.service.end(e.reason == Drained)
	r.follow.close()
	return e
}

// orphan is the session that has an entry in flight, "" for none.
func (r *run) orphan() string {
	v, err := r.box.View()
	if err != nil {
		return "" // told by settle
	}
	defer func() { _ = v.Close() }() // only read
	if d := v.InFlight(); d != nil {
		return d.SessionID
	}
	return ""
}

// loop runs session after session.
func (r *run) loop() *ending {
	for r.ctx.Err() == nil {
		st, e := r.look()
		if e != nil {
			return e
		}
		if e := r.enough(st); e != nil {
			return e
		}
		if rest := r.rest(st); rest > 0 {
			r.doing("it rests until " + words.Stamp(time.Now().Add(rest).Round(time.Second)))
			if e := r.sleep(rest); e != nil {
				return e
			}
			continue // much may have happened meanwhile
		}
		if st.waits || r.Mode == Persist {
			if e := r.runSession(); e != nil {
				return e
			}
		}
	}
	return &ending{reason: Left} // Run says why
}

// stuck ends the work because the inbox cannot be worked on: at once that is a
// matter of set-up, later it may pass.
func (r *run) stuck(err error) *ending {
	var busy busyError
	switch {
	case errors.As(err, &busy):
		return &ending{reason: Busy, detail: busy.Error()}
	case r.report.Sessions == 0:
		return setUp(err)
	}
	return &ending{reason: Left, detail: err.Error()}
}

// conclude settles what the last session left, and counts.
func (r *run) conclude(e *ending) {
	ctx, cancel := r.Terminal.Signals.Hurry(r.Terminal.Grace)
	defer cancel()
	if _, err := r.settle(ctx); err != nil && e.detail == "" {
		e.detail = err.Error()
	}
	r.follow.look()
	after, err := r.totals()
	if err != nil {
		return // told by settle
	}
	n := &r.report
	n.Answered = after.Answered - r.before.Answered
	n.Redelivered = after.Redelivered - r.before.Redelivered
	n.Dropped = after.Dropped - r.before.Dropped
	n.DeadLettered = deadLetters(after) - deadLetters(r.before)
	n.Queued = r.queued()
}

func deadLetters(t inbox.Totals) (n int64) {
	for _, of := range t.DeadLetters {
		n += of
	}
	return n
}
