package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"heartbeat/inbox"
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
func (b *Bridge) Step(ctx context.Context) (report Report, err error) {
	lock, err := b.lock(ctx)
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
	l.Options = b.Options
	s := &step{Bridge: b, ledger: l, report: Report{Run: b.Run.ID(), Dir: b.Run.Dir()}}
	err = s.take(ctx)
	l.Guard = s.report.Guard
	if saveErr := b.save(l); saveErr != nil {
		err = errors.Join(err, saveErr)
	}
	return s.report, err
}

// step is one of them.
type step struct {
	*Bridge
	ledger *ledger
	state  run.State
	where  map[string]string // where the entries of what the process waits for are
	report Report
}

// take goes on as long as something was posted, which the process may go on with.
func (s *step) take(ctx context.Context) error {
	for {
		if err := s.look(); err != nil {
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
		case s.state.Status == run.Failed && s.state.Failure.Seq != s.ledger.Past:
			again, err = s.failed(ctx)
		default:
			again, err = s.goOn(ctx)
		}
		if err != nil || !again {
			return err
		}
	}
}

func (s *step) look() (err error) {
	s.state, err = s.Run.State(cachePath(s.Box, s.Run))
	s.report.Status = s.state.Status
	return err
}

// goOn has the process run if its journal has grown since it did, and sees to what
// it waits for.
func (s *step) goOn(ctx context.Context) (again bool, err error) {
	if s.state.LastSeq != s.ledger.Head || len(s.ledger.Wants) == 0 {
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
		m, posted, err := s.see(ctx, w)
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
	return again, nil
}

// iterate has the process run. It reports whether that ended the run, or may not be
// done.
func (s *step) iterate(ctx context.Context) (ended bool, err error) {
	if s.MaxSteps > 0 && s.ledger.Steps >= s.MaxSteps {
		s.report.Guard = fmt.Sprintf("the process was run %d times already (--max-iterations)", s.ledger.Steps)
		return true, nil
	}
	s.seeVersion(ctx)
	s.ledger.Steps++
	it, err := s.CLI.Iterate(ctx, s.Run.Dir())
	if err != nil {
		return false, err
	}
	if err := s.look(); err != nil {
		return false, err
	}
	s.ledger.Head, s.ledger.Wants = s.state.LastSeq, nil
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
	s.ledger.Progress = s.ledger.Progress.See(session.Fingerprint(pending, strconv.Itoa(s.state.LastSeq)))
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
	if a := s.ledger.Effects[effect]; a.Entry != "" || a.Over != "" {
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
