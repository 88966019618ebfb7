package orchestrate

import (
	"context"
	"path/filepath"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/effect"
	runs "heartbeat/orchestrate/run"
)

// OpenAll opens the runs that the flags of a command name.
func OpenAll(ctx context.Context, r *cli.RunFlags, box *inbox.Inbox, note func(string, ...any)) (all []*Bridge, err error) {
	for _, dir := range r.Dirs {
		b, err := Open(ctx, r, box, dir, note)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// Open opens the bridge of the run in a directory, and binds a new run to its code.
func Open(ctx context.Context, r *cli.RunFlags, box *inbox.Inbox, dir string, note func(string, ...any)) (*Bridge, error) {
	b, err := OpenWith(r, box, DrivenRun{Dir: dir, Options: OptionsOf(r)}, note)
	if err == nil {
		b.Bind(ctx)
	}
	return b, err
}

// OptionsOf returns the flags as package orchestrate takes them.
func OptionsOf(r *cli.RunFlags) Options {
	return Options{
		Breakpoints: effect.Breakpoints(r.Breakpoints), RejectReason: r.RejectReason,
		OnUnresolved: effect.Unresolved(r.OnUnresolved), Execute: r.Execute, AnyCode: r.CodeChanges == "allow", MaxSteps: r.MaxIterations,
	}
}

// OpenWith is [Open] with the options that the run was driven with, and without binding it.
func OpenWith(r *cli.RunFlags, box *inbox.Inbox, of DrivenRun, note func(string, ...any)) (*Bridge, error) {
	dir, err := filepath.Abs(of.Dir)
	if err != nil {
		return nil, err
	}
	opened, err := runs.Open(dir)
	if err != nil {
		return nil, err
	}
	program, err := cli.Beside("heartbeat")
	if err != nil {
		return nil, err
	}
	return &Bridge{
		Box: box, Run: opened, Program: program, CLI: &babysitter.CLI{Command: r.ParsedCommand(), Note: note}, Options: of.Options,
	}, nil
}
