package orchestrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/effect"
)

// Kinds of effects that are not simply work for an agent.
const (
	kindSleep      = "sleep"
	kindBreakpoint = "breakpoint"
)

// handle makes sure that somebody works on an effect. m is a new entry for it. posted says that it has its result.
func (s *step) handle(ctx context.Context, w want) (m *inbox.Message, posted bool, err error) {
	if s.handedOver[w.Effect] {
		taken, posted, err := s.postAnswer(ctx, w)
		if taken || err != nil {
			return nil, posted, err
		}
	}
	switch {
	case w.Kind == kindSleep:
		posted, err = s.sleep(ctx, w)
		return nil, posted, err
	case slices.Contains(s.Execute, w.Kind):
		if err := s.mayRun(); err != nil {
			return nil, false, err
		}
		if s.Outside {
			return nil, false, s.leave(w)
		}
		posted, err = s.execute(ctx, w)
		return nil, posted, err
	case slices.Contains(s.others, w.Kind):
		s.report.Waits++ // another process carries it out
		return nil, false, nil
	case w.Kind == kindBreakpoint && s.Breakpoints != effect.Ask:
		posted, err = s.question(ctx, w)
		return nil, posted, err
	}
	a := s.entryOf(w.Effect)
	f, err := s.stateWhere(a.Entry, s.where)
	switch {
	case err != nil:
		return nil, false, err
	case f.waits():
		s.report.Waits++
		a.Over = ""
		s.ledger.Effects[w.Effect] = a
		if f.where == inbox.FoundInFlight {
			posted, err = s.overdue(ctx, w, a.Entry)
		}
		return nil, posted, err
	case f.where == inbox.FoundAnswered:
		posted, err = s.answered(ctx, w, f.reply)
		return nil, posted, err
	case f.dead != "":
		posted, err = s.giveUpOn(ctx, w, a, fmt.Sprintf("its entry %s was set aside: %s", a.Entry, f.why))
		return nil, posted, err
	}
	m, err = s.ask(w, a)
	return m, false, err
}

// sleep posts the end of a sleep that is over.
func (s *step) sleep(ctx context.Context, w want) (posted bool, err error) {
	if w.Until.After(time.Now()) {
		if s.report.NotBefore == nil || w.Until.Before(*s.report.NotBefore) {
			s.report.NotBefore = &w.Until
		}
		return false, nil
	}
	return s.value(ctx, w.Effect, map[string]any{"sleptUntil": w.Until})
}

// question rejects a breakpoint if the options say so, and otherwise reports it as held.
func (s *step) question(ctx context.Context, w want) (posted bool, err error) {
	if s.Breakpoints == effect.Reject {
		return s.value(ctx, w.Effect, map[string]any{"approved": false, "response": s.RejectReason})
	}
	a := s.ledger.Effects[w.Effect]
	if a.Since.IsZero() {
		a.Since = time.Now()
		s.ledger.Effects[w.Effect] = a
	}
	task, err := s.Run.Task(w.Effect)
	if err != nil {
		return false, err
	}
	s.report.Held = append(s.report.Held, Held{Effect: w.Effect, Label: task.Title, Question: task.Question, Since: a.Since})
	return false, nil
}

// answered handles an effect whose entry was answered without a result. The reply counts if text is asked for.
func (s *step) answered(ctx context.Context, w want, reply string) (posted bool, err error) {
	task, err := s.Run.Task(w.Effect)
	if err != nil {
		return false, err
	}
	if !s.wording(w.Effect, task).MessageCounts() {
		return s.giveUpOn(ctx, w, s.entryOf(w.Effect), "its entry was answered, and no result was handed over")
	}
	if !s.mayPost() {
		s.report.Unposted++
		return false, nil
	}
	return s.value(ctx, w.Effect, reply)
}

// value gives an effect a value as its result.
func (s *step) value(ctx context.Context, effect string, value any) (posted bool, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return false, err
	}
	return s.post(ctx, effect, babysitter.Result{Value: text})
}

// fail posts an effect as failed.
func (s *step) fail(ctx context.Context, effect, name, why string) (posted bool, err error) {
	return s.post(ctx, effect, babysitter.Result{Failure: &babysitter.Failure{Name: name, Message: why}})
}

// post gives an effect its result. It is no error if the effect already has one.
func (s *step) post(ctx context.Context, effect string, result babysitter.Result) (posted bool, err error) {
	if err := s.mayRun(); err != nil {
		return false, err
	}
	result.Metadata = s.costOf(effect)
	err = s.CLI.Post(ctx, s.Run, effect, result)
	if errors.Is(err, babysitter.ErrResolved) {
		return true, nil
	}
	if err == nil {
		s.report.Posted = append(s.report.Posted, effect)
	}
	return err == nil, err
}

// giveUpOn tells the process that no result will come, or leaves the effect to a person.
func (s *step) giveUpOn(ctx context.Context, w want, a asked, why string) (posted bool, err error) {
	if s.OnUnresolved != effect.PostError {
		if a.Over != why {
			a.Over, a.Since = why, time.Now()
		}
		s.ledger.Effects[w.Effect] = a
		s.report.Held = append(s.report.Held, Held{Effect: w.Effect, Reason: a.Over, Since: a.Since})
		return false, nil
	}
	return s.fail(ctx, w.Effect, "UnresolvedEffect", "no result for effect "+w.Effect+": "+why)
}

// overdue tells the process that an effect took longer than its task allows, once its entry was in flight for that
// long. A result that the agent hands over later is refused.
func (s *step) overdue(ctx context.Context, w want, entry string) (posted bool, err error) {
	v, err := s.Box.View()
	if err != nil {
		return false, err
	}
	d := v.InFlight()
	if err := v.Close(); err != nil || d == nil || d.ID() != entry {
		return false, err
	}
	var ms float64
	if json.Unmarshal(d.Metadata()[effect.MetaTimeLimit], &ms) != nil || ms <= 0 {
		return false, nil
	}
	limit := time.Duration(ms * float64(time.Millisecond))
	if time.Since(d.DeliveredAt) <= limit {
		return false, nil
	}
	return s.fail(ctx, w.Effect, "TimeoutError", fmt.Sprintf("it was to be done within %v, and was not", limit))
}
