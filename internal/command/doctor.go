package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/command/doctor"
	"heartbeat/internal/disk"
	"heartbeat/internal/hook"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
)

type doctorFlags struct {
	inbox    string
	project  string
	agent    string
	settings []string
	json     bool
	shownFlags
}

var doctorVerb = cli.Verb{
	Name:  "doctor",
	Short: "look for what would keep the hook from working",
	Long: `Look at everything that a session with the hook depends on: the wiring in all
settings files that Claude Code merges, the binary, the cap on blocks, the
folder's trust, the environment, the client's release, and the inbox's
directory, file system and state. Each check is one line: ok, warn or fail, what
was found, and the fix. Nothing is changed. claude doctor checks what else Claude Code
requires of its settings files.

With --agent codex it asks Codex which hooks it has for the project, and whether
it trusts them: under codex exec an untrusted hook does not run, without a word.

Exit status: 0 nothing would lose or stop work, 1 a check failed.`,
	Example: `heartbeat doctor
heartbeat doctor --project ~/work --settings session.json --json`,
	Build: func(f *pflag.FlagSet) cli.Action {
		o := &doctorFlags{}
		cli.AddNamedInbox(f, &o.inbox)
		f.Lookup("inbox").Usage += "; without it, the one that is wired, else the project's own"
		o.agent = agents[0]
		f.Var(cli.Choice(&o.agent, agents...), "agent", "the client of the sessions")
		f.StringVar(&o.project, "project", ".", "the `directory` that the session is started in")
		f.StringArrayVar(&o.settings, "settings", nil, "a settings `file` beside the usual ones, as given to claude --settings")
		f.BoolVar(&o.json, "json", false, "print one JSON object for each check")
		o.addColor(f)
		return func(args []string, s cli.Streams) error {
			if o.agent == codexAgent && len(o.settings) > 0 {
				return cli.Usage(errors.New("--settings is about Claude Code: Codex says itself which hooks it has"))
			}
			in, err := o.input()
			if err != nil {
				return fmt.Errorf("doctor: %w", err)
			}
			return o.printChecks("doctor", doctor.Run(in), o.json, s, "check failed", "checks failed", doctor.Fail)
		}
	},
}

// printChecks prints the checks. The error counts those in one of the given states.
func (o *shownFlags) printChecks(verb string, all []doctor.Check, asJSON bool, s cli.Streams, one, many string, states ...string) error {
	write := func() error { return doctor.WriteText(o.display(s.Out).Output, all) }
	if asJSON {
		write = func() error { return printEach(s.Out, all) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("%s: print the checks: %w", verb, err)
	}
	if n := doctor.Count(all, states...); n > 0 {
		return errors.New(verb + ": " + words.Count(n, one, many))
	}
	return nil
}

func (o *doctorFlags) input() (doctor.Input, error) {
	in := doctor.Input{
		Codex: o.agent == codexAgent, Environ: os.Environ(), Managed: settings.ManagedDir(), Now: time.Now(),
		Driven: orchestrate.Driven, Hooks: client.CodexHooks,
	}
	in.Home, _ = os.UserHomeDir() // "" if there is none
	in.Stop, in.StopErr = cli.Beside(hook.CommandName)
	var err error
	if in.Project, err = filepath.Abs(o.project); err != nil {
		return in, err
	}
	if _, err := disk.StatDir(in.Project); err != nil {
		return in, fmt.Errorf("look at the project: %w", err)
	}
	if o.inbox != "" {
		if in.Inbox, err = filepath.Abs(o.inbox); err != nil {
			return in, err
		}
	}
	if o.project == "." {
		in.Found = cli.FindInbox()
	}
	for _, path := range o.settings {
		if path, err = filepath.Abs(path); err != nil {
			return in, err
		}
		in.Settings = append(in.Settings, path)
	}
	return in, nil
}

type fsckFlags struct {
	cli.InboxFlags
	shownFlags
	repair bool
}

var fsckVerb = cli.Verb{
	Name:  "fsck",
	Short: "check that every entry is in one place",
	Long: `Check that the files beside an inbox fit together: that each entry waits, is in
flight, is scheduled, was answered or is a dead letter, and only one of these;
that no result stands beyond what the last commit knows; that nothing is overdue;
that files with texts and dead letters belong to each other; that runs wait for
entries that exist; and that each file can be read. Each finding is one line, with
what to do. It works at rest and beside a live session: if something does not fit,
it looks once more under the inbox's lock. Lines that send did not write have no name
of their own, so fsck cannot tell how often they were done.

With --repair it mends what can be mended safely, and records that in an event
(mended): it finishes a commit that was killed, moves what is overdue, passes entries
that wait but were settled before, and removes files that nothing refers to. It
delivers nothing, and takes away no answer.

Exit status: 0 nothing was found, or all of it was mended; 1 something is left, or
could not be looked at.`,
	Example: `heartbeat fsck
heartbeat fsck --repair`,
	Build: func(f *pflag.FlagSet) cli.Action {
		o := &fsckFlags{}
		o.Add(f)
		f.BoolVar(&o.repair, "repair", false, "mend what can be mended safely")
		o.addColor(f)
		return onInbox("", changing(&o.InboxFlags), cli.NoArgs, o.run)
	},
}

func (o *fsckFlags) run(box *inbox.Inbox, _ []string, s cli.Streams) (err error) {
	ctx := context.Background()
	in := doctor.Input{Now: time.Now(), Driven: orchestrate.Driven}
	var all []doctor.Check
	if !o.repair {
		all = doctor.Fsck(ctx, in, box)
	} else if all, err = doctor.Repair(ctx, in, box); err != nil {
		return fmt.Errorf("fsck: repair %s: %w", box.Path(), err)
	}
	return o.printChecks("fsck", all, o.JSON, s, "finding", "findings", doctor.Warn, doctor.Fail)
}
