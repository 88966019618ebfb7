package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heartbeat/internal/cli"

	"heartbeat/inbox"
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
	if len(known) == 0 && !o.JSON {
		s.Note("no run was driven by way of %s", box.Path())
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
	return o.Print(s, now, standingSentence(now))
}

// standingSentence is how a run stands in words.
func standingSentence(s orchestrate.Standing) string {
	parts := []string{"run " + s.Run + ": " + string(s.Status) + pendingWords(s.Pending)}
	if s.Failure != "" {
		parts[0] += " with " + words.Brief(s.Failure)
	}
	where := map[string]int{}
	for _, e := range s.Entries {
		where[e.Where]++
	}
	for _, at := range slices.Sorted(maps.Keys(where)) {
		parts = append(parts, fmt.Sprintf("%s %s", words.Count(where[at], "entry", "entries"), at))
	}
	parts = append(parts, words.Count(s.Iterations, "iteration", "iterations"))
	text := strings.Join(parts, ", ")
	for _, h := range s.Held {
		text += "; waits for a person: " + h.Effect + " " + words.Brief(h.Question+h.Reason)
	}
	switch {
	case s.Done:
		text += "; its proof was given"
	case s.Guard != "":
		text += "; goes no further: " + cli.Guarded(words.Brief(s.Guard), s.OutOfSteps)
	case s.NotBefore != nil:
		text += "; sleeps until " + words.Stamp(*s.NotBefore)
	}
	return words.Line(text)
}

func pendingWords(pending map[string]int) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(pending)) {
		all = append(all, fmt.Sprintf("%d %s", pending[kind], words.Brief(kind)))
	}
	if len(all) == 0 {
		return ""
	}
	return " for " + strings.Join(all, ", ")
}
