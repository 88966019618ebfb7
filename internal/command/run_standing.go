package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
	runs "heartbeat/orchestrate/run"
)

// status shows one run, or all that the inbox has driven.
func (o *runVerbFlags) status(_ context.Context, box *inbox.Inbox, name string, s cli.Streams) error {
	if name != "" {
		r, err := o.find(box, name, s)
		if err != nil {
			return err
		}
		return o.show(box, r.Run, s)
	}
	known, err := knownRuns(box, nil, s)
	if err != nil {
		return err
	}
	if len(known) == 0 {
		nothing(&o.InboxFlags, s, "was orchestrated", box)
	}
	for _, r := range known {
		if err := o.show(box, r.Run, s); err != nil {
			return err
		}
	}
	return nil
}

func (o *runVerbFlags) show(box *inbox.Inbox, r *runs.Run, s cli.Streams) error {
	b := &orchestrate.Bridge{Box: box, Run: r}
	now, err := b.Standing()
	if err != nil {
		return err
	}
	shown := shownRun{Standing: now}
	cost, _, err := b.Cost()
	if err != nil {
		return err
	}
	if !cost.IsZero() {
		shown.Cost = &cost
	}
	sentence := standingSentence(now)
	if cost.Dollars {
		sentence += "; it has cost " + cost.String()
	}
	return report(&o.InboxFlags, s, shown, sentence)
}

// shownRun is a run as status prints it with --json.
type shownRun struct {
	orchestrate.Standing
	Cost *price.Price `json:"cost,omitempty"`
}

// standingSentence says in words how a run stands.
func standingSentence(s orchestrate.Standing) string {
	parts := []string{"run " + s.Run + ": " + string(s.Status)}
	if pending := pendingWords(s.Pending); pending != "" {
		parts[0] += " for " + pending
	}
	if s.Failure != "" {
		parts[0] += " with " + words.Brief(s.Failure)
	}
	parts = append(parts, entriesWords(s.Entries)...)
	parts = append(parts, words.Count(s.Iterations, "iteration", "iterations"))
	return words.Line(strings.Join(append([]string{strings.Join(parts, ", ")}, standingNotes(s)...), "; "))
}

// entriesWords says where the entries of a run are: "2 entries queued".
func entriesWords(entries []orchestrate.Waiting) (all []string) {
	where := map[string]int{}
	for _, e := range entries {
		where[e.Where]++
	}
	for _, at := range slices.Sorted(maps.Keys(where)) {
		all = append(all, fmt.Sprintf("%s %s", words.Count(where[at], "entry", "entries"), at))
	}
	return all
}

// standingNotes say what else there is to know about a run.
func standingNotes(s orchestrate.Standing) (all []string) {
	for _, h := range s.Held {
		all = append(all, "waits for a person: "+h.Effect+" "+words.Brief(h.Question+h.Reason))
	}
	switch {
	case s.Done:
		all = append(all, "it is done")
	case s.Stuck != "":
		all = append(all, "is stuck: "+words.Brief(s.Stuck))
	case s.Guard != "":
		all = append(all, "goes no further: "+cli.Guarded(words.Brief(s.Guard), s.OutOfSteps))
	case s.NotBefore != nil:
		all = append(all, "sleeps until "+words.Stamp(*s.NotBefore))
	}
	return all
}

// pendingWords counts effects by kind: "2 agent, 1 sleep".
func pendingWords(pending map[string]int) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(pending)) {
		all = append(all, fmt.Sprintf("%d %s", pending[kind], words.Brief(kind)))
	}
	return strings.Join(all, ", ")
}
