package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/money/price"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/run"
)

// Step takes the run as far as it gets without an agent, and puts what the run then waits for into the inbox. It may be
// called at any time, by several processes at once and after a crash: an effect has one entry and one result.
func (b *Bridge) Step(ctx context.Context) (Report, error) {
	if !b.Outside {
		return b.underLock(ctx, stepWait, (*step).run)
	}
	report, err := b.underLock(ctx, busyWait, (*step).run)
	if errors.Is(err, disk.ErrLocked) && ctx.Err() == nil {
		return Report{Run: b.Run.ID(), Dir: b.Run.Dir(), Busy: true}, nil
	}
	return report, err
}

// ErrNoTime is the cause with which a hook ends a step that takes longer than the hook has.
var ErrNoTime = errors.New("its hook has no more time for it")

// StepAnew takes a step that runs the process even if nothing has happened since its last run: its code has changed.
func (b *Bridge) StepAnew(ctx context.Context) (Report, error) {
	return b.underLock(ctx, stepWait, func(s *step, ctx context.Context) error {
		s.ledger.Head, s.ledger.Wants = 0, nil
		return s.run(ctx)
	})
}

// Busy reports whether another process is known to take a step of the run.
func (b *Bridge) Busy() bool {
	lock, err := b.lock(context.Background(), time.Nanosecond)
	if err == nil {
		err = lock.Release()
	}
	return errors.Is(err, disk.ErrLocked)
}

// busyWait is how long a step waits for another one that does the same work.
const busyWait = time.Second

// StepIfReady posts the results that were handed over. It takes the step only if the process can then continue, since
// it waits for nothing else or a sleep is over. answered is the id of the entry that was just answered, if any.
// StepIfReady is for callers that have other work to deliver, and should not wait for the process.
func (b *Bridge) StepIfReady(ctx context.Context, answered string) (Report, error) {
	report, err := b.underLock(ctx, busyWait, func(s *step, ctx context.Context) error { return s.runIfReady(ctx, answered) })
	if errors.Is(err, disk.ErrLocked) && ctx.Err() == nil {
		return report, nil // another process is taking the step
	}
	return report, err
}

// underLock takes a step while it holds the run's lock, and saves the ledger.
func (b *Bridge) underLock(ctx context.Context, wait time.Duration, do func(*step, context.Context) error) (report Report, err error) {
	l, lock, err := b.begin(ctx, wait)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if !b.follows {
		l.Options = b.Options
	}
	s := &step{Bridge: b, ledger: l, identity: lock.Identity(), report: Report{Run: b.Run.ID(), Dir: b.Run.Dir(), Iterations: l.Steps}}
	if s.handedOver, err = b.answers(); err != nil {
		return report, fmt.Errorf("look for results of run %s: %w", b.Run.ID(), err)
	}
	err = do(s, ctx)
	if errors.Is(err, errUnaccepted) {
		s.rests, s.report.Rests = l.Rests.still(err), true
		s.report.Guard = b.toAccept(err).Error()
		s.stepped, err = true, nil
	}
	if s.stepped {
		l.Guard, l.Rests = s.report.Guard, s.rests
	}
	switch {
	case ctx.Err() != nil && !errors.Is(err, ErrNoTime): // the step was ended on purpose
	case err != nil:
		if _, unread := b.Run.State(); unread == nil { // else everybody who reads the run meets that error
			l.Stuck = l.Stuck.still(err)
		}
	case s.stepped:
		l.Stuck = standstill{}
	}
	s.report.Iterations = l.Steps
	return s.report, errors.Join(err, b.save(l, lock))
}

type step struct {
	*Bridge
	ledger     *ledger
	state      run.State
	entries    map[string]entryState  // of the wanted effects, by id
	toAppend   []inbox.Message        // entries to append
	posted     bool                   // an effect got its result, so that the process may continue
	handedOver map[string]bool        // effects with a result that waits to be posted
	identity   string                 // of the lock's file
	costs      map[string]price.Price // of the entries of each effect; nil until asked for
	closing    bool                   // a person wants the run to be done once it is completed
	stepped    bool
	rests      standstill
	report     Report
}

// run repeats until it posts nothing more that lets the process continue.
func (s *step) run(ctx context.Context) error {
	s.stepped = true
	for {
		// Forgets what the last round found before it posted.
		s.report.Waits, s.report.Held, s.report.Commands, s.report.NotBefore = 0, nil, nil, nil
		if err := s.readState(); err != nil {
			return err
		}
		var more bool
		var err error
		switch {
		case s.ledger.Done:
			s.report.Done = true
			return nil
		case s.state.Status == run.Completed:
			return s.askForProof(ctx)
		case s.hasFailed():
			more, err = s.handleFailure(ctx)
		default:
			more, err = s.continueRun(ctx)
		}
		if err != nil || !more {
			return err
		}
	}
}

// hasFailed reports whether the run failed and did not recover.
func (s *step) hasFailed() bool {
	return s.state.Status == run.Failed && s.state.Failure.Seq != s.ledger.Past
}

// runIfReady is [Bridge.StepIfReady] under the run's lock.
func (s *step) runIfReady(ctx context.Context, answered string) error {
	if err := s.readState(); err != nil || s.ledger.Done {
		return err
	}
	about := s.ledger.Finish
	switch {
	case s.state.Status == run.Completed:
	case s.hasFailed():
		about = s.ledger.Failure
	default:
		return s.postThenStep(ctx)
	}
	if about.Entry != "" && about.Entry != answered {
		return nil // the agent still has to answer it
	}
	return s.run(ctx)
}

func (s *step) postThenStep(ctx context.Context) error {
	left := 0
	for _, w := range s.ledger.Wants {
		switch {
		case s.state.Effect(w.Effect) != run.Requested:
		case w.Kind == kindSleep && !w.Until.After(time.Now()):
		case s.handedOver[w.Effect]:
			taken, err := s.postAnswer(ctx, w)
			if err != nil {
				return err
			}
			if !taken {
				left++
			}
		default:
			left++
		}
	}
	if left > 0 || s.report.Unposted > 0 {
		return nil
	}
	return s.run(ctx)
}

// readState reads the run's state, and removes the answers to effects that have their result.
func (s *step) readState() (err error) {
	s.state, err = s.Run.State()
	s.report.Status = s.state.Status
	if err != nil {
		return err
	}
	for effect := range s.handedOver {
		if s.state.Effect(effect) != run.Requested {
			err = errors.Join(err, s.removeAnswer(effect))
		}
	}
	return err
}

// continueRun runs the process if its journal has grown since, and handles the effects that it then waits for.
func (s *step) continueRun(ctx context.Context) (more bool, err error) {
	lost := func(w want) bool { return s.state.Effect(w.Effect) == run.Unknown } // by a repair of the journal
	if s.state.Moved != s.ledger.Head || len(s.ledger.Wants) == 0 || slices.ContainsFunc(s.ledger.Wants, lost) {
		if ended, err := s.iterate(ctx); err != nil || ended {
			return ended && s.report.Guard == "", err
		}
	}
	var ids []string
	for _, w := range s.ledger.Wants {
		ids = append(ids, s.entryOf(w.Effect).Entry)
	}
	if s.entries, err = s.entryStates(ids...); err != nil {
		return false, err
	}
	s.toAppend, s.posted = nil, false
	for _, w := range s.ledger.Wants {
		if s.state.Effect(w.Effect) != run.Requested {
			continue // answered since
		}
		if err := s.handle(ctx, w); err != nil {
			return false, err
		}
	}
	return s.posted && s.report.Unposted == 0, s.append(ctx, s.toAppend)
}

// iterate runs the process. ended says that the run ended, or that the process may run no more.
func (s *step) iterate(ctx context.Context) (ended bool, err error) {
	if s.MaxSteps > 0 && s.ledger.Steps >= s.MaxSteps {
		s.report.Guard, s.report.OutOfSteps = fmt.Sprintf("the process was run %d times already", s.ledger.Steps), true
		return true, nil
	}
	if err := s.mayRun(); err != nil {
		return false, err
	}
	it, err := s.CLI.Iterate(ctx, s.Run)
	s.ledger.Steps++
	if err != nil {
		return false, err
	}
	if err := s.readState(); err != nil {
		return false, err
	}
	if it.Status == babysitter.Waiting && s.state.Failure != nil {
		s.ledger.Past = s.state.Failure.Seq // the journal still calls the run failed
	}
	if it.Status != babysitter.Failed {
		s.ledger.Failure = madeEntry{}
	}
	for i, a := range it.NextActions {
		if s.state.Effect(a.Effect) == run.Unknown {
			return false, fmt.Errorf("run %s: run:iterate says that it waits for effect %.100q, of which the run's journal knows nothing: does its process print what looks like an answer?", s.Run.ID(), a.Effect)
		}
		it.NextActions[i].Task = s.askedOf(a)
	}
	if ended := it.Status == babysitter.Completed || it.Status == babysitter.Failed; ended && it.Status != string(s.state.Status) {
		return false, fmt.Errorf("run %s: run:iterate says that it has %s, and the run's journal that it is %s: does its process print what looks like an answer?", s.Run.ID(), it.Status, s.state.Status)
	}
	s.ledger.Head, s.ledger.Wants = s.state.Moved, it.NextActions
	return it.Status != babysitter.Waiting, nil
}

// entryOf returns the entry of an effect: the one that was made, or the first one to make.
func (s *step) entryOf(effect string) madeEntry {
	if a := s.ledger.Effects[effect]; a.Entry != "" {
		return a
	}
	return madeEntry{Entry: s.entryID(effect, 1), Nth: 1, Since: time.Now()}
}

// append appends entries to the inbox, except for those whose id is there already.
func (s *step) append(ctx context.Context, all []inbox.Message) error {
	if len(all) == 0 {
		return nil
	}
	receipts, err := s.Box.AppendAll(ctx, all, cli.DefaultSettle)
	for _, r := range receipts {
		if r.Appended {
			s.report.Queued = append(s.report.Queued, r.ID)
		} else {
			s.report.Waits++
		}
	}
	return err
}

// Outcome is the result of a round of steps.
type Outcome struct {
	Reports    []Report  // one for each step without an error, in the order of the runs
	Unfinished []*Bridge // the runs that are not done
	Queued     bool      // a step appended an entry
	Waiting    bool      // a run waits for an entry of the inbox, perhaps for one just appended
	NotBefore  time.Time // when the first sleep of a run that can continue is over; zero for none
}

// StepAll calls step for each run, in order. The outcome covers the steps without an error: a run that cannot continue
// holds no other up.
func StepAll(ctx context.Context, bridges []*Bridge, step func(context.Context, *Bridge) (Report, error)) (all Outcome, err error) {
	for _, b := range bridges {
		r, unable := step(ctx, b)
		if unable != nil {
			err = errors.Join(err, unable)
			continue
		}
		all.Reports = append(all.Reports, r)
		if !r.Done {
			all.Unfinished = append(all.Unfinished, b)
		}
		all.Queued = all.Queued || len(r.Queued) > 0
		all.Waiting = all.Waiting || len(r.Queued) > 0 || r.Waits > 0
		if r.Guard == "" && r.NotBefore != nil && (all.NotBefore.IsZero() || r.NotBefore.Before(all.NotBefore)) {
			all.NotBefore = *r.NotBefore
		}
	}
	return all, err
}
