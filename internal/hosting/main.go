// Package hosting is heartbeat-host, the command that hosts one session of Claude Code for a
// program that may itself restart at any time. Each verb has a file.
package hosting

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/notify"
)

const command = "heartbeat-host"

// Main runs the command and does not return.
func Main() {
	guardian.Serve()
	notify.Serve()
	os.Exit(Run(os.Args[1:], cli.StandardStreams(command)))
}

func Run(args []string, s cli.Streams) int {
	if len(args) > 0 && args[0] == hostVerb {
		return serveHost(s)
	}
	if len(args) > 0 && args[0] == session.FinishCommand {
		if err := session.FinishAll(args[1:]); err != nil {
			s.Complain(err)
			return cli.ExitError
		}
		return cli.ExitOK
	}
	s = s.OnScreen()
	s.Err = layout.Sentences(s.Err)
	return theProgram().Run(args, s)
}

func theProgram() program.Program {
	return program.Program{
		Name:  command,
		Short: "host a session of Claude Code that outlives whoever started it",
		Long: `heartbeat-host hosts one session of Claude Code for a guild, which is any program
that starts sessions and may itself restart at any time. Each session has a process
of its own, which keeps the transcript, serves the guild's tools to the session, and
reports how it ended, later if need be.

Exit status: that of the verb; 0 done, 1 not done, with a sentence on stderr.`,
		Example: `heartbeat-host start < session.json
heartbeat-host attach ses-1
heartbeat-host cancel ses-1`,
		Groups: []program.Group{
			{Title: "Host", Verbs: []cli.Verb{startVerb, runVerb}},
			{Title: "Look at sessions", Verbs: []cli.Verb{listVerb, statusVerb, logsVerb, attachVerb, transcriptVerb}},
			{Title: "Steer", Verbs: []cli.Verb{sendVerb, cancelVerb}},
			{Title: "Tidy up", Verbs: []cli.Verb{drainVerb, gcVerb}},
		},
		IDs: func(string, *pflag.FlagSet) []program.Hint { return offeredSessions() },
	}
}

// actionOf returns a verb's action: check its arguments, then do it. An error of do begins with the verb;
// an error of check leads to the verb's help.
func actionOf(f *pflag.FlagSet, check func(args []string) error, do func(cli.Streams) error) cli.Action {
	return func(args []string, s cli.Streams) error {
		if err := check(args); err != nil {
			return cli.Usage(err)
		}
		if err := do(s); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		return nil
	}
}

// untilSignal calls do with a context that the first terminating signal ends. The exit status is then the signal's.
func untilSignal(do func(context.Context) error) error {
	taken := signals.Catch()
	defer taken.Stop()
	ctx, cancel := taken.Context()
	defer cancel()
	err := do(ctx)
	if sig, _ := taken.Signal(); sig != 0 && (err == nil || errors.Is(err, context.Canceled)) {
		return cli.EndedBy{Signal: sig}
	}
	return err
}
