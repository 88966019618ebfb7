package orchestrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/orchestrate/effect"
	"heartbeat/orchestrate/prompt"
	"heartbeat/orchestrate/run"
	"heartbeat/orchestrate/schema"
)

// Kinds of entries about the run itself.
const (
	kindFailed = "run failed"
	kindFinish = "run completed"
)

// entryID returns the id of the nth entry for something that a run asks for.
func (b *Bridge) entryID(what string, nth int) string {
	id := b.Run.ID() + "/" + what
	if nth > 1 {
		id += fmt.Sprintf("#%d", nth)
	}
	return id
}

func (b *Bridge) message(id, kind, prompt string) inbox.Message {
	meta := map[string]any{effect.MetaRun: b.Run.ID(), effect.MetaRunDir: b.Run.Dir(), effect.MetaKind: kind}
	return inbox.Message{ID: id, Text: prompt, Metadata: meta}
}

// wording returns the parts of the text of an effect's entry.
func (b *Bridge) wording(effect string, t run.Task) prompt.Effect {
	return prompt.Effect{
		Program: b.Program, Inbox: b.Box.Path(), RunID: b.Run.ID(), ID: effect, Kind: t.Kind, Task: t.Raw,
		TaskFile:   filepath.Join(b.Run.Dir(), "tasks", effect, "task.json"),
		InputsFile: t.InputsPath,
	}
}

// queueEntry makes the step append an entry for an effect.
func (s *step) queueEntry(w want, a madeEntry) error {
	t, err := s.Run.Task(w.Effect)
	if err != nil {
		return err
	}
	s.ledger.Effects[w.Effect] = a
	of := s.wording(w.Effect, t)
	if asked := of.Schema(); asked != nil {
		if err := schema.Usable(asked); err != nil {
			of.SchemaFault = err.Error()
			s.report.Notes = append(s.report.Notes, fmt.Sprintf("the outputSchema of effect %s cannot be used, so its result is not checked: %v", w.Effect, err))
		}
	}
	m := s.message(a.Entry, t.Kind, of.Text())
	m.Metadata[effect.MetaEffect] = w.Effect
	if t.StepID != "" {
		m.Metadata[effect.MetaStep] = t.StepID
	}
	if limit := of.TimeLimit(); limit > 0 {
		m.Metadata[effect.MetaTimeLimit] = limit.Milliseconds()
	}
	s.toAppend = append(s.toAppend, m)
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// entryState says where an entry is, and what became of it.
type entryState struct {
	where string       // as a Receipt's Found; "" if it is not in the inbox
	dead  inbox.Reason // why it was set aside, or ""
}

func (f entryState) waits() bool { return f.where != "" && f.where != inbox.FoundAnswered }

// entryStates returns the states of entries, by id. It reads each file once, however many ids there are.
func (b *Bridge) entryStates(ids ...string) (map[string]entryState, error) {
	v, err := b.Box.View()
	if err != nil {
		return nil, err
	}
	where, err := v.Find(ids...)
	if err = errors.Join(err, v.Close()); err != nil {
		return nil, err
	}
	states := map[string]entryState{}
	for _, id := range ids {
		states[id] = entryState{where: where[id]}
	}
	if len(where) == len(states) {
		return states, nil
	}
	_, err = outcomes.EachLetter(b.Box, func(l inbox.Letter) bool {
		m, _ := effect.MarkIn(l.Metadata) // a letter that came with a copy, or before a move, names a run that is not this one
		if f, asked := states[l.ID]; asked && f.where == "" && l.Open() && m.RunDir == b.Run.Dir() {
			states[l.ID] = entryState{dead: l.Reason}
		}
		return true
	})
	return states, err
}

// waits reports whether one of these entries waits to be delivered or answered.
func (b *Bridge) waits(ids ...string) bool {
	states, err := b.entryStates(ids...)
	return err == nil && slices.ContainsFunc(ids, func(id string) bool { return id != "" && states[id].waits() })
}

func (b *Bridge) reply(id string) (reply string, err error) {
	tail, err := outcomes.OpenTail(b.Box.ResultsPath(), -1)
	if err != nil {
		return "", err
	}
	needle, _ := json.Marshal(id) // a string always encodes
	err = tail.Lines(func(line []byte) {
		var r inbox.Result
		if bytes.Contains(line, needle) && json.Unmarshal(line, &r) == nil && r.ID == id {
			reply = r.Reply
		}
	})
	return reply, errors.Join(err, tail.Close())
}
