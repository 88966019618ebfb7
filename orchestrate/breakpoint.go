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
	value, err := json.Marshal(a)
	if err == nil {
		err = checkAnswer(task, answer{Effect: effect, Value: value})
	}
	if err != nil {
		return fmt.Errorf("answer %s of run %s: %w", effect, b.Run.ID(), err)
	}
	return b.CLI.Post(ctx, b.Run, effect, babysitter.Result{Value: value})
}

// checkAnswer checks the form of an answer to a breakpoint, and that its option exists. Babysitter accepts any
// value, and reads anything but such an object as a refusal.
func checkAnswer(t run.Task, a answer) error {
	if a.Failure != nil {
		return errors.New(`it is no answer to the question: a refusal is {"approved": false}, and no error`)
	}
	var said struct {
		Approved                                *bool
		Response, Option, Feedback, RespondedBy *string
	}
	if err := json.Unmarshal(a.Value, &said); err != nil || said.Approved == nil {
		return errors.New(`it is no answer to the question: that is an object such as {"approved": true, "response": "a text"}`)
	}
	if said.Option != nil && !slices.Contains(t.Choices, *said.Option) {
		there := "the question has none"
		if len(t.Choices) > 0 {
			there = "there are " + strings.Join(t.Choices, ", ")
		}
		return fmt.Errorf("it is no answer to the question: there is no option %q: %s", *said.Option, there)
	}
	return nil
}

// Questions returns the breakpoints that wait for an answer.
func (b *Bridge) Questions() (all []Held, err error) {
	st, err := b.Run.State()
	if err != nil {
		return nil, err
	}
	for _, e := range st.Pending {
		if e.Kind != kindBreakpoint {
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
