package orchestrate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/effect"
	"heartbeat/orchestrate/run"
	"heartbeat/orchestrate/schema"
	recovery "heartbeat/recover"
)

// answer is a result that was handed over, kept until a step posts it.
type answer struct {
	Effect  string              `json:"effect"`
	Value   json.RawMessage     `json:"value,omitempty"`
	Failure *babysitter.Failure `json:"error,omitempty"`
	At      time.Time           `json:"at"`
	// Entry is the id of the entry whose agent handed this over, if that has a check: it counts once the entry is answered.
	Entry string `json:"entry,omitempty"`
	// Lock is the lock's identity, as in the ledger. An answer that came with a repository has another one.
	Lock string `json:"lock"`
}

var (
	// ErrForPerson says that an effect is a question that only a person may answer.
	ErrForPerson = errors.New("it is a question to a person: it is not the agent's to answer")
	// ErrNotJSON says that a result is not a JSON value.
	ErrNotJSON = errors.New("it is not JSON")
)

func answerPath(box *inbox.Inbox, r *run.Run, effect string) string {
	return ledgerPath(box, r) + ".result-" + effect
}

// HandOver keeps the result of an effect: a JSON value that the task's schema allows, or why the task failed. caller is
// the process that hands the result over. While an agent works on the effect's entry, no other agent may hand it over.
// It is durable when HandOver returns, and the next step posts it. The error can match [ErrNotJSON] or [ErrForPerson].
func (b *Bridge) HandOver(caller int, effect string, value []byte, failure *babysitter.Failure) error {
	a := answer{Effect: effect, Value: value, Failure: failure}
	if err := b.mayHandOver(caller, &a); err != nil {
		return fmt.Errorf("result of %s: %w", effect, err)
	}
	return b.handOver(a, true)
}

func (b *Bridge) mayHandOver(caller int, a *answer) error {
	d, sessions, err := b.atWork()
	if err == nil && recovery.InSession(caller, sessions) {
		b.awaitCheck(a, d)
	}
	switch m, _ := effect.MarkOf(d); {
	case err != nil:
		return err
	case m.Effect == a.Effect:
		return recovery.MaySpeak(caller, d, sessions, true)
	case d != nil && recovery.MaySpeak(caller, d, sessions, false) == nil:
		return nil
	}
	return recovery.CheckCaller(caller, sessions)
}

// awaitCheck makes an agent's answer wait for the check of the effect's entry, even if that entry comes later.
func (b *Bridge) awaitCheck(a *answer, d *inbox.Delivery) {
	if d == nil || d.Check == nil || a.Failure != nil {
		return
	}
	if m, _ := effect.MarkOf(d); m.Effect == a.Effect {
		a.Entry = d.ID()
	} else if l, err := b.loadLedger(); err == nil {
		a.Entry = cmp.Or(l.Effects[a.Effect].Entry, b.entryID(a.Effect, 1))
	}
}

// isPostable reports whether an answer, which may be nil, may be posted.
func (b *Bridge) isPostable(a *answer) (bool, error) {
	if a == nil || a.Entry == "" {
		return a != nil, nil
	}
	states, err := b.entryStates(a.Entry)
	return states[a.Entry].where == inbox.FoundAnswered, err
}

// atWork returns the entry in flight, or nil, and the sessions that the inbox knows.
func (b *Bridge) atWork() (d *inbox.Delivery, all []inbox.Session, err error) {
	v, err := b.Box.View()
	if err != nil {
		return nil, nil, err
	}
	all, err = v.Sessions()
	return v.InFlight(), all, errors.Join(err, v.Close())
}

// Readable returns the directories from which a process of an agent may hand over a file as an effect's result: the one
// that its session works in, and the effect's own. A person's process, which may read any file, has none.
func (b *Bridge) Readable(caller int, effect string) ([]string, error) {
	_, sessions, err := b.atWork()
	if err != nil {
		return nil, err
	}
	dir, ofAgent := recovery.WorkingDir(caller, sessions)
	if !ofAgent {
		return nil, nil
	}
	return []string{dir, filepath.Join(b.Run.Dir(), "tasks", filepath.Base(effect))}, nil
}

// TextValue returns a text as a result.
func TextValue(text string) json.RawMessage {
	value, _ := json.Marshal(strings.ToValidUTF8(text, "\uFFFD")) // a string always encodes
	return value
}

// handOverWait is how long a hand-over waits for another one to finish.
const handOverWait = 10 * time.Second

// handOver keeps every result, whether from a command, an agent's tool, or the last message of a turn.
func (b *Bridge) handOver(a answer, durable bool) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("result of %s: %w", a.Effect, err)
		}
	}()
	if a.Failure == nil && !json.Valid(a.Value) {
		return ErrNotJSON
	}
	lock, err := disk.AcquireLock(context.Background(), ledgerPath(b.Box, b.Run)+".result.lock", handOverWait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	task, err := b.Run.Task(a.Effect)
	if err != nil {
		return err
	}
	st, err := b.Run.State()
	if err != nil {
		return err
	}
	if status := st.Effect(a.Effect); status != run.Requested {
		return fmt.Errorf("run %s has one already (%s): an effect has one result", b.Run.ID(), status)
	}
	driven, err := b.loadLedger()
	if err := b.checkResult(task, a, err == nil && driven.Options.Breakpoints == effect.Ask); err != nil {
		return err
	}
	if a.Lock, err = b.identity(); err != nil {
		return err
	}
	was, err := b.answerOf(a.Effect, a.Lock)
	if counts, unknown := b.isPostable(was); counts || err != nil || unknown != nil {
		return cmp.Or(err, unknown, errors.New("one was handed over already, and is posted with the next step: an effect has one result"))
	}
	a.At = time.Now()
	text, err := json.Marshal(a)
	if err == nil {
		err = disk.Publish(answerPath(b.Box, b.Run, a.Effect), append(text, '\n'), durable)
	}
	return err
}

// identity returns the identity of the lock's file, which it makes if it is missing.
func (b *Bridge) identity() (string, error) {
	f, _, err := disk.OpenWrite(lockPath(ledgerPath(b.Box, b.Run)))
	if err != nil {
		return "", err
	}
	return f.Identity(), f.Close()
}

// checkResult returns what is wrong with an answer. asks says that the agent may answer questions for a person.
func (b *Bridge) checkResult(t run.Task, a answer, asks bool) error {
	switch {
	case t.Kind == kindSleep:
		return errors.New("it is a sleep, which ends by itself: it is not the agent's to answer")
	case t.Kind == kindBreakpoint && !asks:
		return ErrForPerson
	case t.Kind == kindBreakpoint:
		return checkAnswer(t, a)
	case a.Failure != nil:
		return nil
	}
	if of := b.wording(a.Effect, t).Schema(); of != nil {
		err := schema.Check(of, a.Value)
		if err != nil && !errors.Is(err, schema.ErrSchema) {
			return fmt.Errorf("the result does not match the task's schema: %w", err)
		}
	}
	return nil
}

// answers returns the effects whose answers wait to be posted. It reads only the names of files.
func (b *Bridge) answers() (map[string]bool, error) {
	prefix := filepath.Base(answerPath(b.Box, b.Run, ""))
	names, err := os.ReadDir(b.Box.Dir())
	all := map[string]bool{}
	for _, n := range names {
		effect, is := strings.CutPrefix(n.Name(), prefix)
		if is && !strings.Contains(effect, ".") { // else it is still being written
			all[effect] = true
		}
	}
	return all, err
}

// answerOf returns the answer that was handed over for an effect, or nil if there is none that was made here.
func (b *Bridge) answerOf(effect, lock string) (*answer, error) {
	text, err := disk.ReadState(answerPath(b.Box, b.Run, effect), disk.MaxWhole)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, disk.ErrForeign) && !errors.Is(err, disk.ErrTooLarge) {
		return nil, fmt.Errorf("read what was handed over: %w", err)
	}
	var a answer
	if err != nil || json.Unmarshal(text, &a) != nil || a.Effect != effect || a.Lock != lock || (a.Failure == nil) == (len(a.Value) == 0) {
		return nil, nil
	}
	return &a, nil
}

// postAnswer posts the handed-over answer of an effect, or leaves it to another step. taken is false if the answer may
// not be posted; the report says why.
func (s *step) postAnswer(ctx context.Context, w want) (taken bool, err error) {
	a, err := s.answerOf(w.Effect, s.identity)
	if err != nil {
		return false, fmt.Errorf("result of %s: %w", w.Effect, err)
	}
	if a == nil {
		s.report.Refused = append(s.report.Refused, fmt.Sprintf("%s: %s was not made here", w.Effect, answerPath(s.Box, s.Run, w.Effect)))
		return false, nil
	}
	if counts, err := s.isPostable(a); !counts || err != nil {
		return false, err
	}
	task, err := s.Run.Task(w.Effect)
	if err != nil {
		return false, err
	}
	if why := s.checkResult(task, *a, s.Breakpoints == effect.Ask); why != nil {
		s.report.Refused = append(s.report.Refused, fmt.Sprintf("%s: %v", w.Effect, why))
		return false, s.removeAnswer(w.Effect)
	}
	if !s.mayPost() {
		s.report.Unposted++
		return true, nil
	}
	if err = s.post(ctx, w.Effect, babysitter.Result{Value: a.Value, Failure: a.Failure}); err == nil {
		err = s.removeAnswer(w.Effect)
	}
	return true, err
}

// mayPost reports whether this step may post another answer.
func (s *step) mayPost() bool {
	return (s.Posts == 0 || len(s.report.Posted) < s.Posts) && (s.Until.IsZero() || time.Now().Before(s.Until))
}

func (s *step) removeAnswer(effect string) error {
	delete(s.handedOver, effect)
	return disk.Remove(answerPath(s.Box, s.Run, effect))
}

// Answer is a person's answer to a breakpoint.
type Answer struct {
	Approved bool   `json:"approved"`
	Response string `json:"response,omitempty"`
	Option   string `json:"option,omitempty"`
	By       string `json:"respondedBy,omitempty"`
}

// Answer posts a person's answer to a breakpoint.
func (b *Bridge) Answer(ctx context.Context, effect string, a Answer) error {
	task, err := b.Run.Task(effect)
	if err != nil {
		return err
	}
	st, err := b.Run.State()
	if err != nil {
		return err
	}
	if task.Kind != kindBreakpoint || st.Effect(effect) != run.Requested {
		return fmt.Errorf("answer %s of run %s: no breakpoint that waits for an answer", effect, b.Run.ID())
	}
	value, _ := json.Marshal(a) // strings and a flag always encode
	if err = checkAnswer(task, answer{Effect: effect, Value: value}); err == nil {
		if err = b.mayRun(); err != nil { // posting runs babysitter, perhaps as the project has it
			err = b.toAccept(err)
		}
	}
	if err != nil {
		return fmt.Errorf("answer %s of run %s: %w", effect, b.Run.ID(), err)
	}
	return b.CLI.Post(ctx, b.Run, effect, babysitter.Result{Value: value})
}

// checkAnswer checks the form of an answer to a breakpoint, and that its option exists. Babysitter accepts any
// value, and treats anything but such an object as a refusal.
func checkAnswer(t run.Task, a answer) error {
	if a.Failure != nil {
		return errors.New(`it is no answer to the question: a refusal is {"approved": false}, and no error`)
	}
	var given struct {
		Approved                                *bool
		Response, Option, Feedback, RespondedBy *string
	}
	if err := json.Unmarshal(a.Value, &given); err != nil || given.Approved == nil {
		return errors.New(`it is no answer to the question: that is an object such as {"approved": true, "response": "a text"}`)
	}
	if given.Option != nil && !slices.Contains(t.Choices, *given.Option) {
		there := "the question has none"
		if len(t.Choices) > 0 {
			there = "there are " + strings.Join(t.Choices, ", ")
		}
		return fmt.Errorf("it is no answer to the question: there is no option %q: %s", *given.Option, there)
	}
	return nil
}

// Questions returns the breakpoints that wait for an answer.
func (b *Bridge) Questions() (all []Held, err error) {
	st, err := b.Run.State()
	if err != nil {
		return nil, err
	}
	l, err := b.loadLedger()
	if err != nil {
		return nil, err
	}
	return b.questions(l, st)
}

func (b *Bridge) questions(l *ledger, st run.State) (all []Held, err error) {
	for _, e := range st.Pending {
		if e.Kind != kindBreakpoint || l.dropped(st, e.ID) {
			continue
		}
		h, err := b.heldBy(e)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

// heldBy describes a breakpoint that waits for an answer.
func (b *Bridge) heldBy(e run.Effect) (Held, error) {
	task, err := b.Run.Task(e.ID)
	return Held{Effect: e.ID, Label: e.Label, Question: task.Question, Since: e.RequestedAt}, err
}
