package verbs

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/budget"
	"heartbeat/internal/cli"
)

// What is done about a session that makes no progress.
const (
	StallReport = "report"
	StallCancel = "cancel"
)

// Hosting is how a session is hosted.
type Hosting struct {
	Config      string // a file, or - for stdin
	Foreground  bool
	Resume      bool
	Inbox       string
	Orphan      cli.OrphanFlags
	Limits      budget.Plan
	Notify      cli.NotifyFlags
	Stall       cli.Span // 0: never
	StallAction string
	Timeout     cli.Span // 0: never
	Grace       cli.Span
	MemoryMax   cli.Bytes // 0: no limit
	SpoolMax    cli.Bytes
	PTY         bool
	Claude      string
}

func (h *Hosting) add(f *pflag.FlagSet) {
	h.Config, h.StallAction = "-", StallReport
	h.Stall, h.Grace, h.SpoolMax = cli.Span(20*time.Minute), cli.Span(10*time.Second), 1<<30
	f.StringVar(&h.Config, "config", h.Config, "`file` with the session's configuration, one JSON object (- is stdin)")
	f.BoolVar(&h.Resume, "resume", false, "go on with the session of this id, which has ended")
	f.StringVar(&h.Inbox, "inbox", "", "take the session's entries from this inbox (`path`), in place of one of its own beside the database")
	h.Orphan.Add(f)
	cli.AddLimits(f, &h.Limits)
	h.Notify.Add(f)
	f.Var(&h.Stall, "stall", "say so after so long without a message and without a tool call (0: never)")
	f.Var(cli.Choice(&h.StallAction, StallReport, StallCancel), "stall-action", "what is done then: only report it, or cancel the session as well")
	f.Var(&h.Timeout, "timeout", "end the session after this time, as timeout (0: never)")
	f.Var(&h.Grace, "grace", "how long the client may take to end before it is killed")
	f.Var(&h.MemoryMax, "memory-max", "most memory that each process of the session may use, such as 4G (0: no limit)")
	f.Var(&h.SpoolMax, "spool-max", "most disk space for messages that the database does not take")
	f.BoolVar(&h.PTY, "pty", false, "host an interactive session in a terminal of its own, by way of heartbeat-launch")
	f.StringVar(&h.Claude, "claude", "", "the Claude Code to run (`path`; default: claude on the PATH)")
}

func (h *Hosting) check(f *pflag.FlagSet) error {
	h.Orphan.Given = f.Changed("on-orphan")
	switch {
	case h.Config == "":
		return errors.New("--config is empty: name a file, or - for stdin")
	case f.Changed("inbox") && h.Inbox == "":
		return errors.New("--inbox is empty: name a file, or leave the flag out")
	case f.Changed("claude") && h.Claude == "":
		return errors.New("--claude is empty: name a program, or leave the flag out")
	case f.Changed("stall-action") && h.Stall == 0:
		return errors.New("--stall-action is about --stall, which is 0: leave one of them out")
	}
	return errors.Join(h.Orphan.Check(), h.Notify.Check(f))
}

// configStatus is the paragraph on exit statuses that start and run share.
const configStatus = `78 the configuration cannot be
used, or not here: one JSON line on stderr says why ("error") and where ("path"), a
failed report is kept as a dead letter where the session's id is known, and nothing
else is left behind`

func startVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "start",
		Short: "host a session in a process of its own",
		Long: `Read a session's configuration, host the session in a process of its own, and
return once that is up. It prints one JSON line: sessionId, pid, pgid, socket. The
process is detached: no signal to the caller's terminal or process group reaches
it, and it writes to LOGDIR/SESSIONID.log. With --foreground it stays here, for
containers: the line is printed once the session is up, the log goes to the same
file, and a signal cancels the session.

The configuration is one JSON object: sessionId, guildToolUrl, dbPath, logDir,
claudeArgs, cwd, env, prompt, tools, startedAt, provider, and if need be metadata,
limits and systemPromptTmpDir. limits has the flags' names, such as
"max-cost-per-entry": 5; of both the smaller counts. Other keys are passed on to the
guild.

The prompt is the first entry of the session's inbox, and send appends more. The
session has completed once all of them were answered.

Exit status: 0 the session is up, with --foreground: its end was decided and
reported, whatever it was; ` + configStatus + `;
1 it could not be hosted for another reason.`,
		Example: `heartbeat-host start < session.json
heartbeat-host start --config session.json --timeout 2h --memory-max 4G
heartbeat-host start --config session.json --resume`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var h Hosting
			f := cli.NewFlags("start")
			h.add(f)
			f.BoolVar(&h.Foreground, "foreground", false, "stay, and return once the session has ended")
			ignoreJSON(f)
			return f, func(args []string, s cli.Streams) error {
				if err := errors.Join(cli.NoArgs(args), usage(h.check(f))); err != nil {
					return err
				}
				return do.Start(&h, s)
			}
		},
	}
}

func runVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "run",
		Short: "host a session here, called as the babysitter of shardworks is",
		Long: `Read a session's configuration from stdin, host the session, and return once it has
ended and was reported. This is how a guild calls node babysitter.js, so
heartbeat-host run can take its place unchanged: it prints nothing on stdout, and
what it logs goes to LOGDIR/SESSIONID.log.

Exit status: 0 the session's end was decided and reported or kept as a dead
letter, whatever it was; ` + configStatus + `;
1 it could not be hosted for another reason: [babysitter] Fatal error: and a
sentence on stderr.`,
		Example: "heartbeat-host run < session.json",
		Build: func() (*pflag.FlagSet, cli.Action) {
			var h Hosting
			f := cli.NewFlags("run")
			h.add(f)
			ignoreJSON(f)
			return f, func(args []string, s cli.Streams) error {
				if err := errors.Join(cli.NoArgs(args), usage(h.check(f))); err != nil {
					return err
				}
				return do.Run(&h, s)
			}
		},
	}
}

// ignoreJSON declares --json where JSON is all there is.
func ignoreJSON(f *pflag.FlagSet) {
	f.Bool("json", true, "print JSON, which it does in any case")
}

// usage marks an error in how the command was called.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return cli.Usage(err)
}
