package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/orchestrate"
	runs "heartbeat/orchestrate/run"
)

// knownRun is a run that a file beside the inbox mentions or that a person named.
type knownRun struct {
	*runs.Run
	kept  orchestrate.Options // how it was driven
	named bool
}

// knownRuns returns the runs in the directories, or else those that the inbox has
// driven. It only reads: files beside the inbox may come from anybody.
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
		st, err := r.State("")
		if err != nil {
			return r, err
		}
		if status, err := st.Effect(effect); err != nil || status != runs.Unknown {
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

// mayRun refuses to run the code of a run that nobody named, unless the run is in the
// folder where this command looks for runs anyway.
func (r knownRun) mayRun(flag string) error {
	dir, err := filepath.Abs(runsDir(flag))
	if err != nil || r.named || filepath.Dir(r.Dir()) == dir {
		return err
	}
	return fmt.Errorf("run %s is %s, which only a file beside the inbox says, and a step runs the code that it names: name it with --run %s", r.ID(), r.Dir(), quote(r.Dir()))
}
