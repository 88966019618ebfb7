package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/words"
)

// demoState is what was shown of an entry.
type demoState struct {
	attempt  int // the last delivery
	answered bool
}

// watch prints what becomes of the prompts until the session has ended, or until returns
// true for the index of the prompt in flight.
func (d *demo) watch(ctx context.Context, s *demoSession, until func(place int) bool) (ended bool, err error) {
	tick := time.NewTicker(demoPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-s.ended:
			_, err := d.look(nil)
			return true, err
		case <-tick.C:
			if s.hasEnded() {
				continue
			}
			if is, err := d.look(until); err != nil || is {
				return false, err
			}
		}
	}
}

// look prints what is new in the inbox.
func (d *demo) look(until func(place int) bool) (is bool, err error) {
	v, err := d.box.View()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	answered, err := d.results()
	if err != nil {
		return false, err
	}
	for _, r := range answered {
		d.tellDelivered(r.ID, r.Attempt)
		if state := d.shown[r.ID]; !state.answered {
			d.tell(d.at("answered", r.ID), "%s", words.Brief(r.Answer()))
			d.shown[r.ID] = demoState{r.Attempt, true}
		}
	}
	in := v.InFlight()
	if in == nil || d.place(in.ID()) != len(answered) {
		return false, nil // the result before it is still being written
	}
	d.tellDelivered(in.ID(), in.Attempt)
	return until != nil && until(len(answered)), nil
}

func (d *demo) tellDelivered(id string, attempt int) {
	state := d.shown[id]
	if attempt <= state.attempt {
		return
	}
	again := ""
	if state.attempt > 0 {
		again = " (again)"
	}
	d.shown[id] = demoState{attempt, state.answered}
	d.tell(d.at("delivered", id), "%s%s", firstLine(demoPrompts[d.place(id)]), again)
}

// at names what happened to a prompt: answered 2.
func (d *demo) at(what, id string) string { return fmt.Sprintf("%s %d", what, d.place(id)+1) }

// place is the index of the entry's prompt.
func (d *demo) place(id string) int { return slices.Index(d.ids, id) }

func (d *demo) inFlight() (in *inbox.Delivery, err error) {
	v, err := d.box.View()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	return v.InFlight(), nil
}

// results returns what was answered so far.
func (d *demo) results() (all []inbox.Result, err error) {
	text, err := disk.ReadState(d.box.ResultsPath(), disk.MaxWhole)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(text) {
		var r inbox.Result
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", d.box.ResultsPath(), err)
		}
		all = append(all, r)
	}
	return all, err
}
