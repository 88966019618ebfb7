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
	"heartbeat/orchestrate/babysitter/invocation"
	"heartbeat/orchestrate/effect"
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
	r.breakpoints, r.onUnresolved = string(effect.DefaultBreakpoints), string(effect.DefaultUnresolved)
	f.StringArrayVar(&r.dirs, "run", nil, "`directory` of a babysitter run that the sessions drive; may be repeated")
	f.StringVar(&r.command, "babysitter", invocation.Default, "the `command` of babysitter, such as \""+invocation.Npx+"\"; a path with blanks in quotes")
	f.Var(cli.Choice(&r.breakpoints, string(effect.Ask), string(effect.Hold), string(effect.Reject)), "breakpoints", "what becomes of a run's question to a person: the agent asks, it waits for an answer, or it is rejected")
	f.Var(cli.Choice(&r.onUnresolved, string(effect.PostError), string(effect.Leave)), "on-unresolved", "what becomes of an effect whose entry was set aside: it waits for a person, or the run learns that it failed")
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
	if _, err := invocation.Parse(r.command); err != nil {
		return fmt.Errorf("--babysitter: %w", err)
	}
	if err := effect.CheckExecute(r.execute); err != nil {
		return fmt.Errorf("--execute: %w", err)
	}
	return nil
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
	command, err := invocation.Parse(r.command)
	if err != nil {
		return all, fmt.Errorf("--babysitter: %w", err)
	}
	if all.Program, err = cli.Beside("heartbeat"); err != nil {
		return all, err
	}
	all.How = orchestrate.Options{
		Command: command, Breakpoints: effect.Breakpoints(r.breakpoints), RejectReason: effect.DefaultRejectReason,
		OnUnresolved: effect.Unresolved(r.onUnresolved), Execute: r.execute,
		MaxSteps: effect.DefaultMaxSteps, MaxIdle: effect.DefaultMaxIdle,
	}
	all.Flags = []string{"--babysitter", words.Shell(command...), "--breakpoints", r.breakpoints, "--on-unresolved", r.onUnresolved}
	if len(r.execute) > 0 {
		all.Flags = append(all.Flags, "--execute", strings.Join(r.execute, ","))
	}
	return all, nil
}
