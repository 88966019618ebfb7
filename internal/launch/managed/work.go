package managed

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/bridges"
	"heartbeat/internal/claim"
	"heartbeat/internal/launch/client"
	"heartbeat/internal/price"
	"heartbeat/internal/words"
)

// lockWait is how long the inbox's own lock may be held by somebody else.
const lockWait = 30 * time.Second

// Run works through the inbox, until it is drained or something keeps the work
// from going on, and says how that went.
func Run(o Options) *Report {
	r := &run{Options: o}
	if r.Client == nil {
		r.Client = client.Of("", o.Terminal.Command)
	}
	r.report = Report{Inbox: o.Inbox, Mode: o.Mode, Queued: -1, StartedAt: time.Now().UTC()}
	if o.Terminal.Timeout > 0 {
		r.deadline = time.Now().Add(o.Terminal.Timeout)
	}
	var cancel context.CancelFunc
	r.ctx, cancel = o.Terminal.Signals.Context()
	defer cancel()
	e := r.work()
	if sig, _ := o.Terminal.Signals.Signal(); sig != 0 {
		e = signalled(sig) // even where the work says something else
	}
	r.report.Reason, r.report.Detail, r.report.Signal = e.reason, e.detail, e.signal
	r.report.EndedAt = time.Now().UTC()
	r.report.Wall = r.report.EndedAt.Sub(r.report.StartedAt).Seconds()
	return &r.report
}

// work does all of it while the inbox is locked for this launcher.
func (r *run) work() (e *ending) {
	var err error
	if r.box, err = inbox.Open(r.Inbox, inbox.Options{LockWait: lockWait, Adopt: r.Adopt}); err != nil {
		return setUp(err)
	}
	r.report.Inbox = r.box.Path()
	lock, err := claim.Take(r.box)
	if err != nil {
		return r.stuck(err)
	}
	defer func() { _ = lock.Release() }() // otherwise the kernel does
	r.tell()
	defer func() { r.tellEnd(e) }()
	r.sign.lock = lock
	defer r.sign.say("has ended")
	if !r.Shared {
		if err := claim.CheckRights(r.box, func(text string) { r.Line(time.Now(), text) }); err != nil {
			return setUp(err)
		}
	}
	if r.SettingsDir != "" {
		r.private = &private{r.SettingsDir}
	} else if r.private, err = makePrivate(r.box, lock); err != nil {
		return setUp(err)
	}
	defer r.private.remove()
	if err := r.prepare(); err != nil {
		return r.stuck(err)
	}
	defer r.follow.close()
	r.service = announce(r.status, r.goesOn)
	r.follow.begin(r.service.poke)
	e = r.loop()
	r.conclude(e)
	r.service.end(e.reason == Drained)
	return e
}

// prepare finds the state of the inbox before the first session.
func (r *run) prepare() error {
	warnings, err := r.box.MoveForeignAside(context.Background())
	if err != nil {
		return err
	}
	for _, w := range warnings {
		r.Line(time.Now(), w)
	}
	_, _ = bridges.All(&r.Runs, r.box, r.note) // they are bound before an agent works; a step says what is wrong
	if r.Terminal.ExitSignal == "" {
		r.Terminal.ExitSignal = filepath.Join(r.box.Dir(), ".exit-signal")
	}
	if err := claim.CheckFree(r.ctx, r.box); err != nil {
		return err
	}
	if r.before, err = readTotals(r.box); err != nil {
		return err
	}
	if r.spent, err = spent(r.box); err != nil {
		return err
	}
	if r.Resume {
		r.resume = sessionInFlight(r.box)
	}
	r.follow, err = follow(r.box, r.Line)
	return err
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

// sleep rests, or until something happens in the inbox or ends the work.
func (r *run) sleep(rest time.Duration) *ending {
	timer := time.NewTimer(rest)
	defer timer.Stop()
	ctx, cancel := r.inTime()
	defer cancel()
	select {
	case <-timer.C:
	case <-r.follow.changed:
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return r.timedOut()
	}
	return nil
}

// conclude settles what the last session left, and counts.
func (r *run) conclude(e *ending) {
	ctx, cancel := r.Terminal.Signals.Hurry(r.Terminal.Grace)
	defer cancel()
	if _, err := r.settle(ctx); err != nil && e.detail == "" {
		e.detail = err.Error()
	}
	r.follow.look()
	after, err := readTotals(r.box)
	if err != nil {
		return // settle says why
	}
	n := &r.report
	n.Answered = after.Answered - r.before.Answered
	n.Redelivered = after.Redelivered - r.before.Redelivered
	n.Dropped = after.Dropped - r.before.Dropped
	n.DeadLettered = deadLetters(after) - deadLetters(r.before)
	n.Queued = countQueued(r.box)
	if after, err := spent(r.box); err == nil { // likewise
		n.Fields = price.Price{Amount: since(r.spent, after), ContextPercent: -1}.Fields()
	}
}

// since is what was spent between two looks: no dollars, if none were said meanwhile.
func since(before, after price.Amount) price.Amount {
	d := after.Minus(before)
	d.Dollars = d.Nanos > 0
	return d
}

func deadLetters(t inbox.Totals) (n int64) {
	for _, of := range t.DeadLetters {
		n += of
	}
	return n
}
