package orchestrate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/effect"
	"heartbeat/orchestrate/run"
	recovery "heartbeat/recover"
)

// Kinds of effects that are more than work for an agent.
const (
	kindSleep      = "sleep"
	kindBreakpoint = "breakpoint"
)

// handle makes sure that somebody works on an effect.
func (s *step) handle(ctx context.Context, w want) error {
	if s.handedOver[w.Effect] {
		if taken, err := s.postAnswer(ctx, w); taken || err != nil {
			return err
		}
	}
	switch {
	case w.Kind == kindSleep && w.Until.After(time.Now()):
		if s.report.NotBefore == nil || w.Until.Before(*s.report.NotBefore) {
			s.report.NotBefore = &w.Until
		}
		return nil
	case w.Kind == kindSleep:
		return s.postValue(ctx, w.Effect, map[string]any{"sleptUntil": w.Until})
	case slices.Contains(s.Execute, w.Kind):
		if err := s.mayRun(); err != nil {
			return err
		}
		if s.Outside {
			return s.leaveCommand(w)
		}
		return s.execute(ctx, w)
	case slices.Contains(s.others, w.Kind):
		s.report.Waits++ // another process carries it out
		return nil
	case w.Kind == kindBreakpoint && s.Breakpoints != effect.Ask:
		return s.handleBreakpoint(ctx, w)
	}
	a := s.entryOf(w.Effect)
	switch f := s.entries[a.Entry]; {
	case f.waits():
		if !slices.Contains(s.report.Queued, a.Entry) {
			s.report.Waits++
		}
		a.Over = ""
		s.ledger.Effects[w.Effect] = a
		if f.where == inbox.FoundInFlight {
			return s.overdue(ctx, w, a.Entry)
		}
		return nil
	case f.where == inbox.FoundAnswered:
		return s.handleAnswered(ctx, w, a)
	case f.dead != "":
		return s.giveUpOn(ctx, w, a, fmt.Sprintf("its entry %s was set aside: %s", a.Entry, f.dead))
	}
	return s.queueEntry(w, a)
}

// handleBreakpoint rejects a breakpoint if the options say so, and otherwise reports it as held.
func (s *step) handleBreakpoint(ctx context.Context, w want) error {
	if s.Breakpoints == effect.Reject {
		return s.postValue(ctx, w.Effect, map[string]any{"approved": false, "response": s.RejectReason})
	}
	a := s.ledger.Effects[w.Effect]
	if a.Since.IsZero() {
		a.Since = time.Now()
		s.ledger.Effects[w.Effect] = a
	}
	task, err := s.Run.Task(w.Effect)
	if err == nil {
		s.report.Held = append(s.report.Held, Held{Effect: w.Effect, Label: task.Title, Question: task.Question, Since: a.Since})
	}
	return err
}

// handleAnswered handles an effect whose entry was answered without a result, as when the run could not be read at the
// end of the turn. The step asks for the result again, a few times, unless the reply counts as the result.
func (s *step) handleAnswered(ctx context.Context, w want, a madeEntry) error {
	reply, err := s.reply(a.Entry)
	task, unread := s.Run.Task(w.Effect)
	switch {
	case err != nil || unread != nil:
		return errors.Join(err, unread)
	case s.wording(w.Effect, task).MessageCounts() && strings.TrimSpace(reply) != "":
		if !s.mayPost() {
			s.report.Unposted++
			return nil
		}
		return s.postValue(ctx, w.Effect, reply)
	case a.Nth < attempts:
		a.Nth++
		a.Entry = s.entryID(w.Effect, a.Nth)
		return s.queueEntry(w, a)
	}
	return s.giveUpOn(ctx, w, a, "its entry was answered, and no result was handed over")
}

func (s *step) postValue(ctx context.Context, effect string, value any) error {
	text, _ := json.Marshal(value) // strings, flags and the ends of sleeps always encode
	return s.post(ctx, effect, babysitter.Result{Value: text})
}

func (s *step) postFailure(ctx context.Context, effect, name, why string) error {
	return s.post(ctx, effect, babysitter.Result{Failure: &babysitter.Failure{Name: name, Message: why}})
}

// post gives an effect its result, unless the effect already has one.
func (s *step) post(ctx context.Context, effect string, result babysitter.Result) (err error) {
	if err := s.mayRun(); err != nil {
		return err
	}
	if s.costs == nil {
		if _, s.costs, err = s.Cost(); err != nil { // this must not keep a result from its run
			s.report.Notes = append(s.report.Notes, "what its entries have cost is not known: "+err.Error())
			s.costs = map[string]price.Price{}
		}
	}
	if cost := s.costs[effect]; !cost.IsZero() {
		result.Metadata = cost.JSON()
	}
	switch err = s.CLI.Post(ctx, s.Run, effect, result); {
	case err == nil:
		s.report.Posted = append(s.report.Posted, effect)
	case !errors.Is(err, babysitter.ErrResolved):
		return err
	}
	s.posted = true
	return nil
}

// giveUpOn posts a failure, since no result will come, or leaves the effect to a person.
func (s *step) giveUpOn(ctx context.Context, w want, a madeEntry, why string) error {
	if s.OnUnresolved != effect.PostError {
		if a.Over != why {
			a.Over, a.Since = why, time.Now()
		}
		s.ledger.Effects[w.Effect] = a
		s.report.Held = append(s.report.Held, Held{Effect: w.Effect, Reason: a.Over, Since: a.Since})
		return nil
	}
	return s.postFailure(ctx, w.Effect, "UnresolvedEffect", "no result for effect "+w.Effect+": "+why)
}

// overdue posts a failure once an effect's entry was in flight for longer than the task allows. A result that the agent
// hands over later is refused. A result that this delivery brought may yet pass its check.
func (s *step) overdue(ctx context.Context, w want, entry string) error {
	d, _, err := s.atWork()
	if err != nil || d == nil || d.ID() != entry {
		return err
	}
	a, err := s.answerOf(w.Effect, s.identity)
	if err != nil || a != nil && a.Entry == entry && a.At.After(d.DeliveredAt) {
		return err
	}
	if f := lateFailure(d); f != nil {
		return s.post(ctx, w.Effect, babysitter.Result{Failure: f})
	}
	return nil
}

// lateFailure returns the failure of an effect whose entry was in flight for longer than its task allows, else nil.
func lateFailure(d *inbox.Delivery) *babysitter.Failure {
	var ms float64
	if json.Unmarshal(d.Metadata()[effect.MetaTimeLimit], &ms) != nil || ms <= 0 {
		return nil
	}
	limit := words.Milliseconds(ms)
	if recovery.Worked(d) <= limit {
		return nil
	}
	return &babysitter.Failure{Name: "TimeoutError", Message: fmt.Sprintf("it was to be done within %v, and was not", limit)}
}

// executeTimeout is the time limit of a task that names none, as in the SDK.
const executeTimeout = 15 * time.Minute

// maxShown limits, in bytes, how much of each output stream a failure quotes.
const maxShown = 1 << 20

// execute runs the command of a task, and posts its output or its failure. If this process is killed before it posts,
// the next step runs the command again.
func (s *step) execute(ctx context.Context, w want) error {
	c, err := s.commandOf(w)
	if err != nil {
		return err
	}
	if c == nil {
		return s.postFailure(ctx, w.Effect, "ExecutionError", "the task names no command")
	}
	result := babysitter.Result{StartedAt: time.Now()}
	ran := babysitter.Execute(ctx, *c)
	if ctx.Err() != nil {
		return context.Cause(ctx) // the next step runs it again
	}
	result.FinishedAt = time.Now()
	switch {
	case ran.Failure != "":
		data, _ := json.Marshal(map[string]any{"exitCode": ran.Status, "stdout": tailOf(ran.Stdout), "stderr": tailOf(ran.Stderr), "cutOff": ran.Cut})
		result.Failure = &babysitter.Failure{Name: "ExecutionError", Message: ran.Failure, Data: data}
	case c.Silent:
		result.Value = []byte(`""`)
	default:
		result.Value, _ = json.Marshal(ran.Stdout) // a string always encodes
	}
	return s.post(ctx, w.Effect, result)
}

// leaveCommand reports a command that another process is to carry out.
func (s *step) leaveCommand(w want) error {
	c, err := s.commandOf(w)
	if err != nil {
		return err
	}
	limit := executeTimeout
	if c != nil {
		limit = c.Timeout
	}
	s.report.Commands, s.report.Longest = append(s.report.Commands, w.Effect), max(s.report.Longest, limit)
	return nil
}

func tailOf(s string) string { return s[max(0, len(s)-maxShown):] }

// askedOf returns the digest of a command's task. An agent may be able to edit the file, so the first digest stays.
func (s *step) askedOf(a want) string {
	at := slices.IndexFunc(s.ledger.Wants, func(w want) bool { return w.Effect == a.Effect })
	if at >= 0 {
		return s.ledger.Wants[at].Task
	}
	task, err := s.Run.Task(a.Effect)
	if err != nil || effect.CheckExecute([]string{a.Kind}) != nil {
		return "" // as in the ledger of an older release
	}
	return digest(task)
}

func digest(t run.Task) string { return fmt.Sprintf("%x", sha256.Sum256(t.Raw)) }

// commandOf returns the command of an effect's task, or nil. Paths are relative to the project, or to the working
// directory if the run is in no project.
func (s *step) commandOf(w want) (*run.Command, error) {
	task, err := s.Run.Task(w.Effect)
	c := task.Command
	switch {
	case err == nil && !s.AnyCode && w.Task != "" && w.Task != digest(task):
		return nil, fmt.Errorf("%w: the task.json of effect %s is not what its process asked for", errUnaccepted, w.Effect)
	case err != nil || c == nil:
		return nil, err
	}
	if !filepath.IsAbs(c.Cwd) {
		c.Cwd = filepath.Join(babysitter.Project(s.Run.Dir()), c.Cwd)
	}
	if c.Timeout <= 0 {
		c.Timeout = executeTimeout
	}
	return c, nil
}

// Cost returns what the entries of a run have cost, as far as the lines are kept: in all, and by effect id.
func (b *Bridge) Cost() (all price.Price, effects map[string]price.Price, err error) {
	effects = map[string]price.Price{}
	add := func(l price.Line) {
		if strings.HasPrefix(l.ID, b.entryID("", 1)) { // each entry's id begins with the run's
			one := effects[effect.IDIn(l.ID)]
			one.Amount, one.Model = one.Plus(l.Amount), l.Model
			all.Amount, effects[effect.IDIn(l.ID)] = all.Plus(l.Amount), one
		}
	}
	now, err := book.Spending(b.Box, add)
	if err != nil {
		return all, nil, err
	}
	for l := range now.Open() {
		add(l)
	}
	return all, effects, nil
}
