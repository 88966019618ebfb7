package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"heartbeat/inbox"
	"heartbeat/orchestrate/prompt"
	"heartbeat/orchestrate/run"
)

// Complete takes a step of the run for a person, who needs no proof: a completed run is then done, and an entry that
// asks an agent for the proof is no longer delivered.
func (b *Bridge) Complete(ctx context.Context) (Report, error) {
	return b.underLock(ctx, stepWait, func(s *step, ctx context.Context) error {
		s.closing = true
		return s.run(ctx)
	})
}

// askForProof asks the agent, in the last entry of a completed run, to name the proof. It does not run the process:
// that would complete the run a second time.
func (s *step) askForProof(ctx context.Context) error {
	if s.closing {
		s.ledger.Done, s.report.Done = true, true
		return nil
	}
	a := s.ledger.Finish
	if a.Entry != "" {
		states, err := s.entryStates(a.Entry)
		reply, unread := s.reply(a.Entry)
		switch f := states[a.Entry]; {
		case err != nil || unread != nil:
			return errors.Join(err, unread)
		case f.waits():
			s.report.Waits++
			return nil
		case f.where == inbox.FoundAnswered && PromiseKept(reply, s.Run.Proof()):
			s.ledger.Done, s.report.Done = true, true
			return nil
		case f.dead == inbox.ReasonOverBudget:
			s.report.Guard = "the run is completed, and the entry that asks for its proof was set aside: " + string(f.dead)
			return nil
		case a.Nth >= attempts:
			s.report.Guard = fmt.Sprintf("the run is completed, and its proof was not named in %d entries: `heartbeat run complete %s` does without", a.Nth, s.Run.ID())
			return nil
		}
	}
	a.Nth++
	a.Entry = s.entryID("finish-"+s.incarnation(), a.Nth)
	output := filepath.Join(s.Run.Dir(), "state", "output.json")
	if !exists(output) {
		output = ""
	}
	err := s.append(ctx, []inbox.Message{s.message(a.Entry, kindFinish, prompt.Completion(s.Run.ID(), s.Run.Proof(), output))})
	if err == nil {
		s.ledger.Finish = a // not before: the ledger is saved after an error, too
	}
	return err
}

// handleFailure hands the error of a failed run to the agent, once. The next run of the process shows whether it is fixed.
func (s *step) handleFailure(ctx context.Context) (again bool, err error) {
	a, failure := s.ledger.Failure, s.state.Failure
	if a.Seq != failure.Seq {
		a = madeEntry{Seq: failure.Seq, Nth: a.Nth + 1, Entry: s.entryID("failure-"+strconv.Itoa(failure.Seq)+"-"+s.incarnation(), 1)}
		if a.Nth > attempts {
			s.report.Guard = fmt.Sprintf("the run failed %d times in a row, and `heartbeat run resume %s` tries again: %s: %s", a.Nth, s.Run.ID(), failure.Name, failure.Message)
			return false, nil
		}
		s.ledger.Failure = a
	}
	states, err := s.entryStates(a.Entry)
	switch f := states[a.Entry]; {
	case err != nil:
		return false, err
	case f == entryState{}: // it was not made yet, or was passed while the run was away
		thrown := failure.Name + ": " + failure.Message + "\n" + failure.Stack
		text := prompt.Failure(s.Run.ID(), s.Run.Dir(), thrown, !s.AnyCode)
		return false, s.append(ctx, []inbox.Message{s.message(a.Entry, kindFailed, text)})
	case f.waits():
		s.report.Waits++
		return false, nil
	case f.where != inbox.FoundAnswered:
		s.report.Guard = fmt.Sprintf("the run failed, the entry about it was set aside, and `heartbeat run resume %s` tries again: %s: %s", s.Run.ID(), failure.Name, failure.Message)
		if f.dead == inbox.ReasonOverBudget {
			s.report.Guard += "; " + string(f.dead)
		}
		return false, nil
	}
	ended, err := s.iterate(ctx)
	return err == nil && (!ended || s.report.Guard == ""), err
}

// attempts limits how often a failed run is tried again, and how often a proof is asked for.
const attempts = 3

// Reopen lets a run recover that failed because an effect was posted as failed. The effect waits again, and the
// next step asks for it with a new entry. Reopen fails if the effect did not fail, or the run has continued since.
// Without an effect it only has the process of a failed run try again, and the failures are counted anew.
func (b *Bridge) Reopen(ctx context.Context, effect string) (err error) {
	l, lock, err := b.begin(ctx, stepWait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	st, err := b.Run.State()
	if err != nil {
		return err
	}
	if effect != "" {
		switch {
		case st.Effect(effect) != run.ResolvedError:
			return fmt.Errorf("run %s, effect %q: the effect keeps its result: it was not posted as failed", b.Run.ID(), effect)
		case st.Status != run.Failed:
			return fmt.Errorf("run %s, effect %s: the effect keeps its result: the run is %s, and has gone on with it", b.Run.ID(), effect, st.Status)
		}
		if err := b.CLI.Reopen(ctx, b.Run, effect); err != nil {
			return err
		}
		if st, err = b.Run.State(); err != nil {
			return err
		}
		a := madeEntry{Nth: max(l.Effects[effect].Nth, 1) + 1, Since: time.Now()}
		a.Entry = b.entryID(effect, a.Nth)
		l.Effects[effect] = a
	}
	if st.Failure != nil {
		l.Past = st.Failure.Seq // the process may try again
	}
	l.Failure, l.Head, l.Wants = madeEntry{}, 0, nil
	return b.save(l, lock)
}
