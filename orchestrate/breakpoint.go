package orchestrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/run"
)

// Answer is a person's answer to a breakpoint.
type Answer struct {
	Approved bool   `json:"approved"`
	Response string `json:"response,omitempty"`
	Option   string `json:"option,omitempty"`
	By       string `json:"respondedBy,omitempty"`
}

// ErrNoBreakpoint says that an effect is not a breakpoint that waits for an answer.
var ErrNoBreakpoint = errors.New("no breakpoint that waits for an answer")

// Answer posts a person's answer to a breakpoint. Errors match [ErrNoBreakpoint] or
// [ErrAnswer], or come from reading the run or from the CLI.
func (b *Bridge) Answer(ctx context.Context, effect string, a Answer) error {
	task, err := b.Run.Task(effect)
	if err != nil {
		return err
	}
	st, err := b.Run.State("")
	if err != nil {
		return err
	}
	status, err := st.Effect(effect)
	if err != nil {
		return err
	}
	if task.Kind != kindBreakpoint || status != run.Requested {
		return fmt.Errorf("answer %s of run %s: %w", effect, b.Run.ID(), ErrNoBreakpoint)
	}
	value, err := json.Marshal(a)
	if err == nil {
		err = checkAnswer(task, answer{Effect: effect, Value: value})
	}
	if err != nil {
		return fmt.Errorf("answer %s of run %s: %w", effect, b.Run.ID(), err)
	}
	return b.CLI.PostOK(ctx, b.Run.Dir(), effect, value, babysitter.Attachments{})
}

// ErrAnswer says that an answer to a breakpoint has a form that processes cannot read.
var ErrAnswer = errors.New("it is no answer to the question")

// checkAnswer checks the form of an answer to a breakpoint, and that its option exists.
// Babysitter accepts any value, and takes all but such an object for a refusal.
func checkAnswer(t run.Task, a answer) error {
	if a.Failure != nil {
		return fmt.Errorf(`%w: a refusal is {"approved": false}, and no error`, ErrAnswer)
	}
	var said struct {
		Approved                                *bool
		Response, Option, Feedback, RespondedBy *string
	}
	if err := json.Unmarshal(a.Value, &said); err != nil || said.Approved == nil {
		return fmt.Errorf(`%w: that is an object such as {"approved": true, "response": "a text"}`, ErrAnswer)
	}
	if said.Option == nil || t.Breakpoint == nil {
		return nil
	}
	options := t.Breakpoint.Choices()
	if !slices.Contains(options, *said.Option) {
		return fmt.Errorf("%w: there is no option %q: %s", ErrAnswer, *said.Option, choiceWords(options))
	}
	return nil
}

func choiceWords(options []string) string {
	if len(options) == 0 {
		return "the question has none"
	}
	return "there are " + strings.Join(options, ", ")
}

// Questions are the breakpoints that wait for an answer.
func (b *Bridge) Questions() (all []Held, err error) {
	st, err := b.Run.State("")
	if err != nil {
		return nil, err
	}
	for _, e := range st.Pending {
		if e.Kind != kindBreakpoint {
			continue
		}
		task, err := b.Run.Task(e.ID)
		if err != nil {
			return nil, err
		}
		h := Held{Effect: e.ID, Label: e.Label, Since: e.RequestedAt}
		if task.Breakpoint != nil {
			h.Question = task.Breakpoint.Question
		}
		all = append(all, h)
	}
	return all, nil
}
