// Package bridges opens the runs that the flags of a command name.
package bridges

import (
	"path/filepath"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/orchestrate"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/effect"
	"heartbeat/orchestrate/prompt"
	runs "heartbeat/orchestrate/run"
)

// All are those of the runs that the flags name.
func All(r *cli.RunFlags, box *inbox.Inbox, note func(string, ...any)) (all []*orchestrate.Bridge, err error) {
	for _, dir := range r.Dirs {
		b, err := Open(r, box, dir, note)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// Open is the bridge of the run in a directory. It binds a run that is new to its code.
func Open(r *cli.RunFlags, box *inbox.Inbox, dir string, note func(string, ...any)) (*orchestrate.Bridge, error) {
	b, err := OpenWith(r, box, orchestrate.DrivenRun{Dir: dir, Options: Options(r)}, note)
	if err == nil {
		b.Bind()
	}
	return b, err
}

// Options are the flags as package orchestrate takes them.
func Options(r *cli.RunFlags) orchestrate.Options {
	return orchestrate.Options{
		Command: r.ParsedCommand(), Breakpoints: effect.Breakpoints(r.Breakpoints), RejectReason: r.RejectReason,
		OnUnresolved: effect.Unresolved(r.OnUnresolved), Execute: r.Execute, AnyCode: r.CodeChanges == "allow", MaxSteps: r.MaxIterations, MaxIdle: r.MaxIdle,
	}
}

// ResultCommand is the command by which an agent hands results over to an inbox. program is the
// path of heartbeat.
func ResultCommand(program, inbox string) prompt.ResultCommand {
	return prompt.ResultCommand{
		Words:     []string{program, "result", "--inbox", inbox},
		ValueFile: "--value-file", TextFile: "--text-file", Failure: "--error",
	}
}

// OpenWith is Open with the options that the run was driven with.
func OpenWith(r *cli.RunFlags, box *inbox.Inbox, of orchestrate.DrivenRun, note func(string, ...any)) (*orchestrate.Bridge, error) {
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
	return &orchestrate.Bridge{
		Box: box, Run: opened, ResultCommand: ResultCommand(program, box.Path()), CLI: &babysitter.CLI{Command: r.ParsedCommand(), Note: note}, Options: of.Options,
	}, nil
}
