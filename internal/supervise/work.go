package supervise

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claim"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/money/price"
	"heartbeat/internal/notify"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/sharing"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
)

// lockWait is how long to wait for the inbox's own lock.
const lockWait = 30 * time.Second

// Run works through the inbox until it is drained or the work cannot go on, and reports how that went.
func Run(o Options) *Report {
	r := &run{Options: o, inTerminal: terminal.Run}
	if r.Client == nil {
		r.Client = client.Of("", o.Terminal.Command)
	}
	r.report = Report{Inbox: o.Inbox, Mode: o.Mode, Queued: -1, StartedAt: time.Now().UTC()}
	began := machine.SinceBoot()
	if r.Warm && r.DrainTimeout > 0 {
		o.Terminal.Signals.Spare()
	}
	callOff := r.heedStop()
	defer callOff()
	e := r.work()
	if sig, _ := o.Terminal.Signals.Signal(); sig != 0 {
		e = r.stopped() // a signal outranks what the work says
	}
	r.report.Reason, r.report.Detail, r.report.Signal = e.reason, e.detail, e.signal
	r.report.EndedAt = time.Now().UTC()
	r.report.Wall = time.Duration(machine.SinceBoot() - began).Seconds() // the clock may be set meanwhile
	return &r.report
}

const exitSignal = ".exit-signal" // beside the inbox: see [terminal.Options.ExitSignal]

// work does everything while this launcher holds the inbox's lock.
func (r *run) work() (e *ending) {
	var err error
	if r.box, err = inbox.Open(r.Inbox, inbox.Options{LockWait: lockWait, Adopt: r.Adopt}); err != nil {
		return r.stuck(err)
	}
	r.report.Inbox = r.box.Path()
	lock, err := claim.Take(r.box)
	if err != nil {
		return r.stuck(err)
	}
	r.lock = lock
	defer func() { _ = lock.Release() }() // otherwise the kernel does
	say := func(text string) { r.Line(time.Now(), text) }
	if r.notifier, err = notify.StartHelper(r.Notify, say); err != nil {
		say(err.Error()) // the work goes on without a notifier
	}
	r.notifier.Follow(r.box.Path())
	defer func() { r.notifyEnd(e) }()
	r.sign.setLock(lock)
	defer r.sign.setLock(nil) // a late writer of the sign must not write to a closed file
	defer func() { r.sign.say(e.lastWords()) }()
	if !r.Shared {
		if err := claim.CheckRights(r.box, ", or say with --shared that it is meant", say); err != nil {
			return r.stuck(err)
		}
	}
	endBeside, err := r.startBeside()
	if err != nil {
		return r.stuck(err)
	}
	defer endBeside()
	if r.SettingsDir != "" {
		r.private = &private{r.SettingsDir}
	} else if r.private, err = makePrivate(r.box, lock); err != nil {
		return r.stuck(err)
	}
	defer r.endRest()
	defer func() { // a hook may ask once more while its session is being ended
		if claim.Lost(r.box, lock) == nil { // else it may be another launcher's
			_ = os.Remove(filepath.Join(r.box.Dir(), exitSignal))
		}
	}()
	r.listen()
	defer func() { r.sign.setSocket("", false); r.attach.Close(); r.private.remove() }() // by then it may be another one
	if err := r.prepare(); err != nil {
		return r.stuck(err)
	}
	defer r.follow.close()
	r.service = newService(r.status, r.isProgressing)
	r.follow.begin(func() {
		r.service.news.Store(true)
		_ = r.lost() // ends the work
	})
	e = r.loop()
	r.conclude(e)
	r.service.end(e)
	return e
}

func (r *run) prepare() error {
	warnings, err := r.box.MoveForeignAside(context.Background())
	if err != nil {
		return err
	}
	for _, w := range warnings {
		r.Line(time.Now(), w)
	}
	_, _ = orchestrate.OpenAll(r.stop.over, &r.Runs, r.box, r.note) // binds the runs before an agent works; a step reports errors
	if r.Terminal.ExitSignal == "" {
		r.Terminal.ExitSignal = filepath.Join(r.box.Dir(), exitSignal)
	}
	if err := claim.CheckFree(r.stop.asked, r.box); err != nil {
		return err
	}
	if r.before, err = readTotals(r.box); err != nil {
		return err
	}
	if r.spent, err = spent(r.box); err != nil {
		return err
	}
	if r.Resume {
		if d, err := delivered(r.box); err == nil && d != nil { // settle reports an error
			r.resume = d.SessionID
		}
	}
	r.follow, err = follow(r.box, r.Line)
	return err
}

func (r *run) loop() *ending {
	for r.stop.asked.Err() == nil {
		e := r.round()
		if e == nil {
			continue
		}
		if !r.shouldRetry(e) {
			return e
		}
		for r.pace.faults > 0 && time.Now().Before(r.pace.notBefore) && r.stop.asked.Err() == nil {
			r.restFor(time.Until(r.pace.notBefore), nil) // reading the inbox again would be another try
		}
	}
	return r.stopped()
}

// round rests or runs one session, and returns what would end the work.
func (r *run) round() *ending {
	st, e := r.settleAndStep()
	if e == nil {
		e = r.endReason(st)
	}
	if e != nil {
		return e
	}
	if rest := r.rest(st); rest > 0 {
		r.announceWait(st, rest)
		r.restFor(rest, r.follow.changed) // the inbox may change a lot meanwhile
		return nil
	}
	if st.waits || r.Mode == Persist {
		r.announceLimits()
		return r.runSession()
	}
	return nil
}

// recheckEvery is the longest rest before the inbox is read again. Timers stand still while the
// machine sleeps, but waits end by the wall clock.
const recheckEvery = 15 * time.Second

// restFor announces a rest and waits until it is over, something wakes it, or the work ends.
func (r *run) restFor(rest time.Duration, wake <-chan struct{}) {
	r.publish("it rests until " + words.Stamp(time.Now().Add(rest).Round(time.Second)))
	// If this process is killed between two sessions, a guardian removes the private directory. During a
	// session the session's guardian does; without one, the next launcher does.
	if r.SettingsDir == "" && r.resting == nil {
		r.resting, _ = guardian.Post("", nil, guardian.Then{Remove: r.private.paths()})
	}
	select {
	case <-time.After(min(rest, recheckEvery)):
	case <-wake:
	case <-r.stop.asked.Done():
	}
}

func (r *run) conclude(e *ending) {
	if r.lost() != nil { // what has the inbox's name now may be another's work
		r.report.Answered = int64(r.follow.last().answered)
		return
	}
	ctx, cancel := r.Terminal.Signals.Hurry(r.Terminal.Grace)
	defer cancel()
	_, unsettled := r.settle(ctx)
	if unsettled != nil && !strings.Contains(e.detail, unsettled.Error()) { // it may be what ended the work
		e.detail = strings.TrimPrefix(e.detail+"; "+unsettled.Error(), "; ")
	}
	r.follow.poll()
	after, err := readTotals(r.box)
	if err != nil {
		return // settle reports why
	}
	if after.Answered < r.before.Answered { // somebody removed the journal, and the state began anew
		r.before = inbox.Totals{}
	}
	n := &r.report
	n.Answered = after.Answered - r.before.Answered
	n.Redelivered, n.Dropped = after.Redelivered-r.before.Redelivered, after.Dropped-r.before.Dropped
	n.DeadLettered = deadLetters(after) - deadLetters(r.before)
	if n.Queued = countQueued(r.box); n.Queued == 0 && e.reason == Left && unsettled == nil {
		*e = ending{reason: Drained} // what waited was settled or withdrawn meanwhile
	}
	if after, err := spent(r.box); err == nil { // else the cost is not known
		meanwhile := after.Minus(r.spent)
		meanwhile.Dollars = meanwhile.Nanos > 0 // no dollars if the client named none
		n.Cost = price.Price{Amount: meanwhile}.Cost()
	}
}

func deadLetters(t inbox.Totals) (n int64) {
	for _, of := range t.DeadLetters {
		n += of
	}
	return n
}

type run struct {
	Options
	inTerminal func(terminal.Options) (terminal.Outcome, error)
	box        *inbox.Inbox
	lock       *disk.Lock // keeps other workers off the inbox: see lost
	report     Report
	patient    patience
	before     inbox.Totals
	spent      price.Amount // the amount before the first session
	helpers
	current atomic.Pointer[session] // nil between two sessions
	sign    sign
	stop    windDown
	between
	trouble trouble
}

// helpers work beside the sessions.
type helpers struct {
	follow   *follower
	service  *service
	notifier notify.Helper // notifies a person, if there is a command for that
	private  *private
	resting  *guardian.Guardian // nil while a session runs
	attach   sharing.Server     // listens unless a person is at the terminal
}

// between is what a session leaves to the next.
type between struct {
	seq    int64     // the number of the next commit to the inbox, as of the last settle
	last   *session  // the session that has ended and is not settled yet
	resume string    // the conversation that the next session continues
	asleep time.Time // no need to step the runs before then
	pace   pace
}

// publish shows others what the launcher does, and what keeps sessions from working.
func (r *run) publish(text string) {
	troubled := ""
	if r.pace.fruitless > 0 {
		troubled = "troubled"
		text += fmt.Sprintf(", after %s without an answer", words.Count(r.pace.fruitless, "session", "sessions"))
	}
	if r.trouble.cause != "" {
		troubled = "troubled"
		text += ": " + r.trouble.cause
	}
	r.sign.say(text, troubled)
}
