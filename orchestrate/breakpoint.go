package orchestrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/run"
)

// Answer is what a person says to a breakpoint.
type Answer struct {
	Approved bool   `json:"approved"`
	Response string `json:"response,omitempty"`
	Option   string `json:"option,omitempty"`
	By       string `json:"respondedBy,omitempty"`
}

// ErrNoBreakpoint says that an effect is no breakpoint that waits for an answer.
var ErrNoBreakpoint = errors.New("no breakpoint that waits for an answer")

// Answer posts a person's answer to a breakpoint.
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
	if err != nil {
		return err
	}
	return b.CLI.PostOK(ctx, b.Run.Dir(), effect, value, babysitter.Attachments{})
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
