package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
	runs "heartbeat/orchestrate/run"
)

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
		noteNothing(&o.InboxFlags, s, "is orchestrated", box)
	}
	for _, r := range known {
		err = errors.Join(err, o.show(box, r.Run, s))
	}
	return err
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
	return program.Report(s, o.JSON, shown, sentence)
}

// shownRun is a run as status prints it with --json.
type shownRun struct {
	orchestrate.Standing
	Cost *price.Price `json:"cost,omitempty"`
}

func standingSentence(s orchestrate.Standing) string {
	parts := []string{"run " + s.Run + ": " + string(s.Status)}
	if asked := orchestrate.Counted(s.Pending); asked != "" && s.Status == runs.Waiting {
		parts[0] += " for " + asked
	} else if asked != "" { // its process did not wait for them
		parts = append(parts, asked+" unanswered")
	}
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
	all := []string{strings.Join(parts, ", ")}
	for _, h := range s.Held {
		all = append(all, "waits for a person: "+h.Effect+" "+words.Brief(h.Question+h.Reason))
	}
	switch {
	case s.Done:
		all = append(all, "it is done")
	case s.Stuck != "":
		all = append(all, "is stuck: "+words.Brief(s.Stuck))
	case s.Guard != "":
		all = append(all, "goes no further: "+cli.GuardHint(words.Brief(s.Guard), s.OutOfSteps))
	case s.NotBefore != nil:
		all = append(all, "sleeps until "+words.Stamp(*s.NotBefore))
	}
	return words.Line(strings.Join(all, "; "))
}

// knownRun is a run that a file beside the inbox mentions or that a person named.
type knownRun struct {
	*runs.Run
	kept  orchestrate.Options // how it was driven
	named bool
}

// knownRuns returns the runs in the directories, or that the inbox has driven. It only reads: anybody may have made them.
func knownRuns(box *inbox.Inbox, dirs []string, s cli.Streams) (all []knownRun, err error) {
	driven, strange, err := orchestrate.Driven(box)
	if err != nil {
		return nil, err
	}
	kept := map[string]orchestrate.Options{}
	for _, d := range driven {
		kept[d.Dir] = d.Options
		if len(dirs) > 0 {
			continue
		}
		r, err := runs.Open(d.Dir)
		switch {
		case d.Done && errors.Is(err, runs.ErrNoRun): // it was put away
		case err != nil:
			s.Note("%v", err)
		default:
			all = append(all, knownRun{r, d.Options, false})
		}
	}
	if len(dirs) == 0 && len(strange) > 0 {
		s.Note("%s in %s was not written by way of this inbox, and is not believed: name the run's directory, and a step writes it again", strings.Join(strange, ", "), box.Dir())
	}
	for _, dir := range dirs {
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
		r, err := runs.Open(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, knownRun{r, kept[dir], true})
	}
	return all, nil
}

// runOf returns the run that has the effect. A damaged run does not keep it from the others.
func runOf(all []knownRun, effect string) (knownRun, error) {
	var unread error
	for _, r := range all {
		st, err := r.State()
		if err == nil && st.Effect(effect) != runs.Unknown {
			return r, nil
		}
		unread = errors.Join(unread, err)
	}
	return knownRun{}, cmp.Or(unread, fmt.Errorf("effect %q: none of the runs of this inbox has it", effect))
}

// runsDir returns the folder in which babysitter's command keeps runs.
func runsDir(flag string) string {
	return cmp.Or(flag, os.Getenv("BABYSITTER_RUNS_DIR"), filepath.Join(".a5c", "runs"))
}

// mayRun refuses to run the code of a run that nobody named, unless this command looks for runs in its folder anyway.
func (r knownRun) mayRun(flag string) error {
	dir, err := filepath.Abs(runsDir(flag))
	if err != nil || r.named || filepath.Dir(r.Dir()) == dir {
		return err
	}
	return fmt.Errorf("run %s is %s, which only a file beside the inbox says, and a step runs the code that it names: name it with --run %s",
		r.ID(), r.Dir(), words.Shell(r.Dir()))
}
