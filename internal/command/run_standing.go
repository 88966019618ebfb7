package command

import (
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
func (o *runVerbFlags) status(box *inbox.Inbox, args []string, s cli.Streams) error {
	if len(args) == 1 {
		r, err := o.find(box, args[0], s)
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
	now, err := (&orchestrate.Bridge{Box: box, Run: r}).Standing()
	if err != nil {
		return err
	}
	cost, err := costOfRun(box, now.Run)
	if err != nil {
		return err
	}
	sentence := standingSentence(now)
	if cost != nil && cost.Dollars {
		sentence += "; it has cost " + cost.String()
	}
	return report(&o.InboxFlags, s, shownRun{now, cost}, sentence)
}

// shownRun is a run as status prints it with --json.
type shownRun struct {
	orchestrate.Standing
	Cost *price.Price `json:"cost,omitempty"`
}

// standingSentence is how a run stands in words.
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

// entriesWords is where the entries of a run are: "2 entries queued".
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

// standingNotes say what else there is to know of a run.
func standingNotes(s orchestrate.Standing) (all []string) {
	for _, h := range s.Held {
		all = append(all, "waits for a person: "+h.Effect+" "+words.Brief(h.Question+h.Reason))
	}
	switch {
	case s.Done:
		all = append(all, "its proof was given")
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
