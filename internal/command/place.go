package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
	runs "heartbeat/orchestrate/run"
)

// knownRun is a run that a file beside the inbox mentions or that a person named.
type knownRun struct {
	*runs.Run
	kept  orchestrate.Options // how it was driven
	named bool
}

// knownRuns returns the runs in the directories, or else those that the inbox has driven. It only reads, because
// files beside the inbox may come from anybody.
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
		case errors.Is(err, runs.ErrNoRun): // it was deleted
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

// runOf returns the run that has the effect.
func runOf(all []knownRun, effect string) (knownRun, error) {
	for _, r := range all {
		st, err := r.State()
		if err != nil || st.Effect(effect) != runs.Unknown {
			return r, err
		}
	}
	return knownRun{}, fmt.Errorf("effect %q: none of the runs of this inbox has it", effect)
}

// runsDir is the folder in which babysitter's command keeps runs.
func runsDir(flag string) string {
	for _, dir := range []string{flag, os.Getenv("BABYSITTER_RUNS_DIR")} {
		if dir != "" {
			return dir
		}
	}
	return filepath.Join(".a5c", "runs")
}

// mayRun refuses to run the code of a run that nobody named, unless the run is in the folder where this command
// looks for runs anyway.
func (r knownRun) mayRun(flag string) error {
	dir, err := filepath.Abs(runsDir(flag))
	if err != nil || r.named || filepath.Dir(r.Dir()) == dir {
		return err
	}
	return fmt.Errorf("run %s is %s, which only a file beside the inbox says, and a step runs the code that it names: name it with --run %s",
		r.ID(), r.Dir(), words.Shell(r.Dir()))
}

// minPrefix is how many characters of a name are enough.
const minPrefix = 4

// names are the names of a thing: its sender's id, which may be empty, and those that heartbeat gives it.
type names struct {
	id  string
	own []string
}

func (n names) all() []string { return append([]string{n.id}, n.own...) }

// resolve returns what a word means: things with that id, or else with that name from heartbeat, or else with that
// prefix. Ids come first because senders may choose any. Several results mean that the word is ambiguous.
func resolve[T any](word string, all []T, namesOf func(T) names) []T {
	begin := strings.TrimSuffix(word, "…") // lists cut a name with it
	ways := []func(names) bool{
		func(n names) bool { return word != "" && n.id == word },
		func(n names) bool { return slices.Contains(n.own, word) },
		func(n names) bool {
			return len(begin) >= minPrefix && slices.ContainsFunc(n.all(), func(name string) bool { return strings.HasPrefix(name, begin) })
		},
	}
	for _, fits := range ways {
		var found []T
		for _, t := range all {
			if fits(namesOf(t)) {
				found = append(found, t)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// mayBeNamed reports whether any of the words may name a thing with these names.
func mayBeNamed(words []string, n names) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return len(resolve(word, []names{n}, func(n names) names { return n })) > 0
	})
}
