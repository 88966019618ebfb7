package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/run"
	"heartbeat/orchestrate/session"
)

// settle is how long a last line of the inbox that lacks its newline must stand
// still.
const settle = 250 * time.Millisecond

// Step takes the run as far as it gets without an agent, and makes sure that what
// it then waits for is in the inbox. It may be called at any time, also beside
// itself and after a crash: an effect has one entry, and one result.
func (b *Bridge) Step(ctx context.Context) (Report, error) {
	if !b.Outside {
		return b.under(ctx, stepWait, (*step).run)
	}
	report, err := b.under(ctx, busyWait, (*step).run)
	if errors.Is(err, disk.ErrLocked) && ctx.Err() == nil {
		return Report{Run: b.Run.ID(), Dir: b.Run.Dir(), Busy: true}, nil
	}
	return report, err
}

// Busy reports whether another process takes a step of the run, as far as can be
// told.
func (b *Bridge) Busy() bool {
	lock, err := b.lock(context.Background(), time.Nanosecond)
	if err == nil {
		err = lock.Release()
	}
	return errors.Is(err, disk.ErrLocked)
}

// busyWait is how long a pass waits for a step of the same run, which does what it
// would do.
const busyWait = time.Second

// Pass posts results that were handed over, and takes the step only where that is
// all the process waits for, or a sleep is over: the process can get no further before.
// settled is the id of the entry that was answered just now, if any. It is for who has
// an entry to deliver already.
func (b *Bridge) StepIfReady(ctx context.Context, settled string) (Report, error) {
	report, err := b.under(ctx, busyWait, func(s *step, ctx context.Context) error { return s.runIfReady(ctx, settled) })
	if errors.Is(err, disk.ErrLocked) && ctx.Err() == nil {
		return report, nil // somebody takes a step
	}
	return report, err
}

// under takes a step under the run's lock, and keeps what came of it.
func (b *Bridge) under(ctx context.Context, wait time.Duration, do func(*step, context.Context) error) (report Report, err error) {
	lock, err := b.lock(ctx, wait)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := b.claim(); err != nil {
		return report, err
	}
	l, err := b.open()
	if err != nil {
		return report, err
	}
	if !b.beside {
		l.Options = b.Options
	}
	s := &step{Bridge: b, ledger: l, identity: lock.Identity(), report: Report{Run: b.Run.ID(), Dir: b.Run.Dir(), Iterations: l.Steps}}
	if s.handedOver, err = b.answers(); err != nil {
		return report, fmt.Errorf("look for results of run %s: %w", b.Run.ID(), err)
	}
	err = do(s, ctx)
	if s.stepped {
		l.Guard = s.report.Guard
	}
	s.report.Iterations = l.Steps
	return s.report, errors.Join(err, b.save(l, lock))
}

// step is one of them.
type step struct {
	*Bridge
	ledger     *ledger
	state      run.State
	where      map[string]string // where the entries of what the process waits for are
	handedOver map[string]bool   // the effects of which a result waits to be posted
	identity   string            // of the lock's file
	stepped    bool
	report     Report
}

// take goes on as long as something was posted, which the process may go on with.
func (s *step) run(ctx context.Context) error {
	s.stepped = true
	for {
		if err := s.readState(); err != nil {
			return err
		}
		var again bool
		var err error
		switch {
		case s.ledger.Done:
			s.report.Done = true
			return nil
		case s.state.Status == run.Completed:
			return s.finish(ctx)
		case s.hasFailed():
			again, err = s.failed(ctx)
		default:
			again, err = s.continueRun(ctx)
		}
		if err != nil || !again {
			return err
		}
	}
}

// hasFailed reports whether the run failed and did not get over it.
func (s *step) hasFailed() bool {
	return s.state.Status == run.Failed && s.state.Failure.Seq != s.ledger.Past
}

// pass is a step that is taken in passing.
func (s *step) runIfReady(ctx context.Context, settled string) error {
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
	if about.Entry != "" && about.Entry != settled {
		return nil // it waits, or is with somebody
	}
	return s.run(ctx)
}

func (s *step) postThenStep(ctx context.Context) error {
	left := 0
	for _, w := range s.ledger.Wants {
		status, err := s.state.Effect(w.Effect)
		if err != nil {
			return err
		}
		switch {
		case status != run.Requested:
		case w.Kind == kindSleep && !w.Until.After(s.now()):
		case s.handedOver[w.Effect]:
			_, posted, err := s.postAnswer(ctx, w)
			if err != nil {
				return err
			}
			if !posted {
				left++
			}
		default:
			left++
		}
	}
	if left > 0 {
		return nil
	}
	return s.run(ctx)
}

func (s *step) readState() (err error) {
	s.state, err = s.Run.State(cachePath(s.Box, s.Run))
	s.report.Status = s.state.Status
	if err != nil || len(s.handedOver) == 0 {
		return err
	}
	return s.sweep()
}

// continueRun has the process run if its journal has grown since it did, and sees to what
// it waits for.
func (s *step) continueRun(ctx context.Context) (again bool, err error) {
	if s.state.Moved != s.ledger.Head || len(s.ledger.Wants) == 0 {
		if ended, err := s.iterate(ctx); err != nil || ended {
			return ended && s.report.Guard == "", err
		}
	}
	if err := s.findWants(); err != nil {
		return false, err
	}
	var all []inbox.Message
	for _, w := range s.ledger.Wants {
		status, err := s.state.Effect(w.Effect)
		if err != nil {
			return false, err
		}
		if status != run.Requested {
			continue // answered since
		}
		m, posted, err := s.handle(ctx, w)
		if err != nil {
			return false, err
		}
		again = again || posted
		if m != nil {
			all = append(all, *m)
		}
	}
	if err := s.append(ctx, all); err != nil {
		return false, err
	}
	return again && s.report.Unposted == 0, nil
}

// iterate has the process run. It reports whether that ended the run, or may not be
// done.
func (s *step) iterate(ctx context.Context) (ended bool, err error) {
	if s.MaxSteps > 0 && s.ledger.Steps >= s.MaxSteps {
		s.report.Guard, s.report.OutOfSteps = fmt.Sprintf("the process was run %d times already", s.ledger.Steps), true
		return true, nil
	}
	s.seeVersion(ctx)
	s.ledger.Steps++
	it, err := s.CLI.Iterate(ctx, s.Run.Dir())
	if err != nil {
		return false, err
	}
	if err := s.readState(); err != nil {
		return false, err
	}
	s.ledger.Head, s.ledger.Wants = s.state.Moved, nil
	if it.Status == babysitter.Waiting && s.state.Failure != nil {
		s.ledger.Past = s.state.Failure.Seq // run:status goes on to call the run failed
	}
	if it.Status != babysitter.Failed {
		s.ledger.Failure = asked{}
	}
	var pending []string
	for _, a := range it.NextActions {
		s.ledger.Wants = append(s.ledger.Wants, want{Effect: a.EffectID, Kind: a.Kind, Until: a.SleepUntil})
		pending = append(pending, a.EffectID)
	}
	s.ledger.Progress = s.ledger.Progress.See(session.Fingerprint(pending, strconv.Itoa(s.state.Moved)))
	if s.ledger.Progress.Stuck(s.MaxIdle) {
		s.report.Guard = fmt.Sprintf("the process was run %d times without getting on", s.ledger.Progress.Unchanged)
		return true, nil
	}
	return it.Status != babysitter.Waiting, nil
}

// findWants looks for the entries of all that the process waits for, at once.
func (s *step) findWants() (err error) {
	var ids []string
	for _, w := range s.ledger.Wants {
		ids = append(ids, s.entryOf(w.Effect).Entry)
	}
	s.where, err = s.find(ids)
	return err
}

// entryOf is what was made of an effect, or is to be.
func (s *step) entryOf(effect string) asked {
	if a := s.ledger.Effects[effect]; a.Entry != "" {
		return a
	}
	return asked{Entry: s.entryID(effect, 1), Nth: 1, Since: s.now()}
}

// append puts entries into the inbox. Ids that are there already are not appended
// again.
func (s *step) append(ctx context.Context, all []inbox.Message) error {
	if len(all) == 0 {
		return nil
	}
	receipts, err := s.Box.AppendAll(ctx, all, settle)
	for _, r := range receipts {
		if r.Appended {
			s.report.Queued = append(s.report.Queued, r.ID)
		} else {
			s.report.Waits++
		}
	}
	return err
}
