package hosting

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"heartbeat/internal/cli"
	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/notify"
	"heartbeat/internal/words"
)

var startVerb = cli.Verb{
	Name:  "start",
	Short: "host a session in a process of its own",
	Long: `Read a session's configuration, host the session in a detached process of its own,
which writes to LOGDIR/SESSIONID.log, and return once it is up, with one JSON line:
sessionId, pid, pgid, socket. With --foreground stay until the session's end; a signal
cancels it.

The configuration is one JSON object: sessionId, guildToolUrl, dbPath, logDir,
claudeArgs, cwd, env, prompt, tools, startedAt, provider, and if need be metadata,
limits (named as the flags; the smaller counts) and systemPromptTmpDir. Other keys are
passed on to the guild. The prompt is the first entry of the session's inbox, and send
appends more. The session has completed once all of them were answered.

Exit status: 0 the session is up, with --foreground: its end was decided and
reported, whatever it was; 75 not now, call it again later: space, descriptors,
processes or memory have run out, delivery is paused until a time, or another process
works on the inbox; 78 the configuration cannot be used, or not here; 1 the call was
wrong, or another reason. Unless the call was wrong, one JSON line on stderr has the
reason ("error") and its place ("path"). With 78 the guild gets a failed report if the
session's id is known; with 75 only if the session had begun.`,
	Example: `heartbeat-host start < session.json
heartbeat-host start --config session.json --timeout 2h --memory-max 4G
heartbeat-host start --config session.json --resume`,
	Build: hosting(func(o *order, f *pflag.FlagSet) {
		f.BoolVar(&o.foreground, "foreground", false, "stay, and return once the session has ended")
	}),
}

var runVerb = cli.Verb{
	Name:  "run",
	Short: "start --foreground, called as the babysitter of shardworks is",
	Long: `Host a session as start --foreground does, but called as a guild calls node
babysitter.js, which it can replace: the configuration is on stdin, and nothing is
printed on stdout.

Exit status: 0 the session's end was decided and reported, or its report is kept for
the guild, whatever it was; 1 it could not be hosted, for whatever reason:
[babysitter] Fatal error: and a sentence on stderr.`,
	Example: "heartbeat-host run < session.json",
	Build:   hosting(func(o *order, _ *pflag.FlagSet) { o.foreground, o.seed = true, true }),
}

type order struct {
	session.Options
	file       string // the config's file, - for stdin
	foreground bool
	seed       bool // called through the babysitter's interface
	notify     cli.NotifyFlags
}

// hosting returns the Build of a verb that hosts a session in the given way.
func hosting(way func(*order, *pflag.FlagSet)) func(*pflag.FlagSet) cli.Action {
	return func(f *pflag.FlagSet) cli.Action {
		o := &order{Options: session.Defaults(), file: "-"}
		o.add(f)
		way(o, f)
		f.Bool("json", true, "print JSON, which it does in any case")
		return func(args []string, s cli.Streams) error {
			if err := cmp.Or(cli.NoArgs(args), o.check(f)); err != nil {
				return cli.Usage(err)
			}
			return start(o, s)
		}
	}
}

func (o *order) add(f *pflag.FlagSet) {
	f.Var(cli.Named(&o.file, "name a file, or - for stdin"), "config", "`file` with the session's configuration, one JSON object (- is stdin)")
	f.BoolVar(&o.Resume, "resume", false, "continue the session of this id, which has ended")
	f.Var(cli.Named(&o.Inbox, "name a file, or leave the flag out"), "inbox", "take the session's entries from this inbox (`path`), instead of one of its own beside the database")
	cli.AddOrphan(f, &o.Settings)
	cli.AddChecks(f, &o.Settings)
	cli.AddLimits(f, &o.Limits)
	o.notify.Add(f)
	f.Var((*cli.Span)(&o.Stall), "stall", "warn after so long without a message and without a tool call (0: never)")
	f.Var(cli.Choice((*string)(&o.StallAction), string(session.ReportStall), string(session.CancelStall)), "stall-action", "what to do then: only report it, or also cancel the session")
	f.Var((*cli.Span)(&o.Timeout), "timeout", "end the session after this time, as timeout (0: never)")
	f.Var((*cli.Span)(&o.Grace), "grace", "how long the client may take to end before it is killed")
	f.Var((*cli.Bytes)(&o.MemoryMax), "memory-max", "most memory that each process of the session may use, such as 4G (0: no limit)")
	f.BoolVar(&o.RequireTools, "require-tools", false, "a session whose calls of the guild's tools all failed, or that never asked for them, is failed")
	f.BoolVar(&o.PTY, "pty", false, "host an interactive session in a terminal of its own, as heartbeat-launch does")
	f.Var((*cli.Span)(&o.AskPatience), "ask-patience", "with --pty: how long a session that asks something waits for somebody who attaches (heartbeat attach) and answers (0: it is ended at once)")
	f.Var(cli.Named(&o.Claude, "name a program, or leave the flag out"), "claude", "the Claude Code to run (`path`; default: claude on the PATH)")
}

func (o *order) check(f *pflag.FlagSet) error {
	if f.Changed("stall-action") && o.Stall == 0 {
		return errors.New("--stall-action is about --stall, which is 0: leave one of them out")
	}
	if o.AskPatience > 0 && !o.PTY {
		return errors.New("--ask-patience is about a session in a terminal: add --pty, or leave it out")
	}
	o.Notify = notify.Options{Command: o.notify.Command, Drained: o.notify.Drained, Stall: o.Stall}
	return o.notify.Check()
}

func start(o *order, s cli.Streams) error {
	err := o.read(s.In)
	switch {
	case err != nil && !errors.As(err, new(*config.Problem)) && !o.seed:
		return err
	case err != nil:
	case o.foreground:
		signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE) // stdout's reader may go; the client would inherit an ignored signal
		err = o.host(func(up session.Up) {
			if !o.seed {
				_ = cli.PrintJSON(s.Out, up)
			}
		})
	default:
		var up *session.Up
		if up, err = o.detach(); err == nil {
			return cli.PrintJSON(s.Out, up)
		}
	}
	if err == nil {
		return nil
	}
	r := o.reportRefusal(err)
	if o.seed {
		fmt.Fprintf(s.Err, "[babysitter] Fatal error: %s\n", words.Sentence(r.Why))
		return cli.Silent(cli.ExitError)
	}
	status := r.Status
	r.Status = 0 // not printed
	if err := cli.PrintJSON(s.Err, r); err != nil {
		return err
	}
	return cli.Silent(status)
}
