package launch

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/launch/managed"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
	"heartbeat/orchestrate/babysitter"
)

// runs is what the command line says of babysitter runs.
type runs struct {
	dirs         []string
	command      string
	breakpoints  string
	onUnresolved string
	execute      []string
}

// ofRuns are the flags that say how they are driven.
var ofRuns = []string{"babysitter", "breakpoints", "on-unresolved", "execute"}

func (r *runs) add(f *pflag.FlagSet) {
	r.breakpoints, r.onUnresolved = string(orchestrate.Hold), string(orchestrate.Leave)
	f.StringArrayVar(&r.dirs, "run", nil, "`directory` of a babysitter run that the sessions drive; may be repeated")
	f.StringVar(&r.command, "babysitter", "babysitter", "the `command` of babysitter, such as \""+babysitter.Npx+"\"; a path with blanks in quotes")
	f.Var(cli.Choice(&r.breakpoints, string(orchestrate.Ask), string(orchestrate.Hold), string(orchestrate.Reject)), "breakpoints", "what becomes of a run's question to a person: the agent asks, it waits for an answer, or it is rejected")
	f.Var(cli.Choice(&r.onUnresolved, string(orchestrate.PostError), string(orchestrate.Leave)), "on-unresolved", "what becomes of an effect whose entry was set aside: it waits for a person, or the run learns that it failed")
	f.StringSliceVar(&r.execute, "execute", nil, "`kinds` of effects to carry out here in place of the agent: node, shell")
}

func (r *runs) check(f *pflag.FlagSet) error {
	for _, name := range ofRuns {
		if len(r.dirs) == 0 && f.Changed(name) {
			return fmt.Errorf("--%s is about babysitter runs: name one with --run", name)
		}
	}
	switch {
	case slices.Contains(r.dirs, ""):
		return errors.New("--run is empty: name the directory of a run")
	}
	if _, err := babysitter.ParseCommand(r.command); err != nil {
		return fmt.Errorf("--babysitter: %w", err)
	}
	return orchestrate.CheckExecute(r.execute)
}

// managed is the same for who drives them, in whatever folder.
func (r *runs) managed() (all managed.Runs, err error) {
	for _, dir := range r.dirs {
		if dir, err = filepath.Abs(dir); err != nil {
			return all, fmt.Errorf("run %s: %w", dir, err)
		}
		all.Dirs = append(all.Dirs, dir)
	}
	if len(all.Dirs) == 0 {
		return all, nil
	}
	command, err := babysitter.ParseCommand(r.command)
	if err != nil {
		return all, fmt.Errorf("--babysitter: %w", err)
	}
	all.How = orchestrate.Options{
		Command: command, Breakpoints: orchestrate.Breakpoints(r.breakpoints), RejectReason: orchestrate.DefaultRejectReason,
		OnUnresolved: orchestrate.Unresolved(r.onUnresolved), Execute: r.execute,
		MaxSteps: orchestrate.DefaultMaxSteps, MaxIdle: orchestrate.DefaultMaxIdle,
	}
	all.Flags = []string{"--babysitter", words.Shell(command...), "--breakpoints", r.breakpoints, "--on-unresolved", r.onUnresolved}
	if len(r.execute) > 0 {
		all.Flags = append(all.Flags, "--execute", strings.Join(r.execute, ","))
	}
	return all, nil
}
