package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/internal/words"
	"heartbeat/orchestrate/babysitter/invocation"
	"heartbeat/orchestrate/effect"
)

// RunFlags are how babysitter runs are driven, shared by the hook and the verbs.
type RunFlags struct {
	Dirs          []string
	Command       string
	Breakpoints   string
	RejectReason  string
	OnUnresolved  string
	MaxIterations int
	MaxIdle       int
	Execute       []string
	// CodeChanges is what becomes of a run whose code has changed since it was bound.
	CodeChanges string
	// StateDir is the directory of the sessions' state files. MinSeconds is the shortest
	// average duration of their iterations. Only the hook and `run` have these.
	StateDir string
	// MaxCost is what all entries of a run may cost, in billionths of a dollar, 0 for no
	// limit. Only the hook, the launcher and `run` have it.
	MaxCost    int64
	MinSeconds int
}

// Add declares the flags.
func (r *RunFlags) Add(f *pflag.FlagSet) {
	f.Var(usd{&r.MaxCost, true}, "max-cost-per-run", "set a run's entries aside, and so hold it, once all of them have cost so many dollars")
	r.AddDriven(f)
}

// AddDriven declares all flags but --max-cost-per-run.
func (r *RunFlags) AddDriven(f *pflag.FlagSet) {
	f.Var(arrayList(&r.Dirs), "run", "`directory` of a babysitter run to drive by way of the inbox; may be repeated")
	r.AddWays(f)
}

// AddOwnLimit declares --max-cost-per-run for verbs that set it for one run.
func (r *RunFlags) AddOwnLimit(f *pflag.FlagSet) {
	f.Var(usd{&r.MaxCost, true}, "max-cost-per-run", "the run may cost so many dollars from its beginning on, whatever the flags of the hook say (0: as these say)")
}

// AddWays declares all flags but --run and --max-cost-per-run.
func (r *RunFlags) AddWays(f *pflag.FlagSet) {
	r.Breakpoints, r.OnUnresolved = string(effect.DefaultBreakpoints), string(effect.DefaultUnresolved)
	r.AddCommand(f)
	f.Var(Choice(&r.Breakpoints, string(effect.Ask), string(effect.Hold), string(effect.Reject)), "breakpoints", "what becomes of a run's question to a person: the agent asks, it waits for heartbeat breakpoint approve, or it is rejected")
	f.StringVar(&r.RejectReason, "reject-reason", effect.DefaultRejectReason, "with --breakpoints reject: the `text` that the run is told")
	f.Var(Choice(&r.OnUnresolved, string(effect.PostError), string(effect.Leave)), "on-unresolved", "what becomes of an effect whose entry was set aside: it waits for a person, or the run learns that it failed")
	r.AddCodeChanges(f)
	f.Var(commaList(&r.Execute), "execute", "`kinds` of effects to carry out here in place of the agent: node, shell")
	f.IntVar(&r.MaxIterations, "max-iterations", effect.DefaultMaxSteps, "how often a run's process is run (0: no limit)")
	f.IntVar(&r.MaxIdle, "max-idle", effect.DefaultMaxIdle, "how often in a row without the run getting on (0: no limit)")
}

// AddCodeChanges declares --code-changes.
func (r *RunFlags) AddCodeChanges(f *pflag.FlagSet) {
	r.CodeChanges = "ask"
	f.Var(Choice(&r.CodeChanges, "allow", "ask"), "code-changes", "what becomes of a run whose code has changed since it was bound: its process is run all the same, or it rests until a person accepts that")
}

// AddStateDir declares --state-dir.
func (r *RunFlags) AddStateDir(f *pflag.FlagSet) {
	f.StringVar(&r.StateDir, "state-dir", "", "`directory` of babysitter's session state files (default: BABYSITTER_STATE_DIR, or ~/.a5c/state)")
}

// AddCommand declares --babysitter.
func (r *RunFlags) AddCommand(f *pflag.FlagSet) {
	f.StringVar(&r.Command, "babysitter", invocation.Default, "the `command` of babysitter, such as \""+invocation.Npx+"\"; a path with blanks in quotes")
}

// Absolute makes paths absolute, so that the flags mean the same in any folder. The
// command is a path only if it contains a slash.
func (r *RunFlags) Absolute() (err error) {
	for i := range r.Dirs {
		if r.Dirs[i], err = filepath.Abs(r.Dirs[i]); err != nil {
			return err
		}
	}
	command, err := invocation.Parse(r.Command)
	if err != nil {
		return err
	}
	r.Command = words.Shell(command...)
	if r.StateDir != "" {
		r.StateDir, err = filepath.Abs(r.StateDir)
	}
	return err
}

// Check refuses values that make no sense.
func (r *RunFlags) Check() error {
	switch {
	case r.MaxIterations < 0:
		return fmt.Errorf("--max-iterations is %d: it must be 0 or more", r.MaxIterations)
	case r.MaxIdle < 0:
		return fmt.Errorf("--max-idle is %d: it must be 0 or more", r.MaxIdle)
	case r.MinSeconds < 0:
		return fmt.Errorf("--min-iteration-seconds is %d: it must be 0 or more", r.MinSeconds)
	}
	if r.Command != invocation.Default { // which needs no look at the disk at every turn
		if _, err := invocation.Parse(r.Command); err != nil {
			return fmt.Errorf("--babysitter: %w", err)
		}
	}
	if err := effect.CheckExecute(r.Execute); err != nil {
		return fmt.Errorf("--execute: %w", err)
	}
	return nil
}

// ParsedCommand splits the command into words. Check has reported errors in it.
func (r *RunFlags) ParsedCommand() []string {
	command, _ := invocation.Parse(r.Command)
	return command
}

// Arguments returns the flags with which another command drives runs in the same way.
func (r *RunFlags) Arguments() []string {
	return []string{
		"--babysitter=" + words.Shell(r.ParsedCommand()...), "--breakpoints=" + r.Breakpoints, "--reject-reason=" + r.RejectReason,
		"--on-unresolved=" + r.OnUnresolved, "--execute=" + strings.Join(r.Execute, ","), "--code-changes=" + r.CodeChanges,
		fmt.Sprintf("--max-iterations=%d", r.MaxIterations), fmt.Sprintf("--max-idle=%d", r.MaxIdle),
	}
}

// LimitArguments returns the flag with the limit of a run, which only a hook takes.
func (r *RunFlags) LimitArguments() []string {
	if r.MaxCost == 0 {
		return nil
	}
	return []string{"--max-cost-per-run=" + usd{to: &r.MaxCost}.String()}
}
