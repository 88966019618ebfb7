// Package launch is the command heartbeat-launch: it runs a command in a terminal of
// its own until the command ends or has to be ended, and leaves no process of it behind.
package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/host/guardian"
	"heartbeat/internal/host/signals"
	"heartbeat/internal/launch/terminal"
)

// CommandName is what the launcher is called where it is installed.
const CommandName = "heartbeat-launch"

// Exit statuses; any other is the command's own.
const (
	exitOK        = 0
	exitError     = 1
	exitTimedOut  = 124 // as timeout(1) has it
	exitGaveUp    = 125
	exitCannotRun = 126 // as a shell has it
	exitNotFound  = 127

	// Of managed sessions; the last three are those of sysexits(3).
	exitDeadLettered   = 3
	exitLeft           = 75 // work is: EX_TEMPFAIL
	exitAuthentication = 77 // EX_NOPERM
	exitSetUp          = 78 // EX_CONFIG
)

// Main is the whole command; it does not return.
func Main() {
	guardian.Serve()
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are the process's own.
type streams struct{ in, out, err *os.File }

func run(args []string, s streams) (status int) {
	taken := signals.Take()
	defer taken.Stop()
	v := newVoice(s.err)
	defer v.finish()
	defer func() {
		if p := recover(); p != nil {
			v.say("internal error: %v: please report it with this:\n%s", p, debug.Stack())
			status = exitError
		}
	}()
	var l launch
	flags := l.set()
	err := cli.FlagError(flags.Parse(args), flags)
	switch {
	case err != nil:
	case l.help:
		return show(v, s.out, Page().Help())
	case l.manual:
		return show(v, s.out, Page().Manual())
	case l.version:
		return show(v, s.out, cli.VersionLine(CommandName)+"\n")
	default:
		err = l.check(flags)
	}
	if err != nil {
		v.say("%v (see %s --help)", err, CommandName)
		return exitError
	}
	return l.run(flags, s, v, taken)
}

func show(v *voice, out io.Writer, text string) int {
	if _, err := io.WriteString(out, text); err != nil {
		v.say("print it: %v", err)
		return exitError
	}
	return exitOK
}

// run runs the command that is left behind the flags, or sessions of it.
func (l *launch) run(flags *pflag.FlagSet, s streams, v *voice, taken *signals.Taken) int {
	o, err := l.options(flags, os.Environ(), v)
	if err == nil {
		o.Stdin, o.Stdout, o.Stderr, o.Signals = s.in, s.out, s.err, taken
		if l.inbox != "" {
			return l.runManaged(o, s, v, flags.Changed("timeout"))
		}
		if l.output == showNone {
			o.Stdout = nil
		}
		var outcome terminal.Outcome
		if outcome, err = l.runRecorded(o, v); err == nil {
			return l.conclude(outcome, v)
		}
	}
	v.say("%v", err)
	switch {
	case errors.Is(err, terminal.ErrNotFound):
		return exitNotFound
	case errors.Is(err, terminal.ErrCannotRun):
		return exitCannotRun
	}
	return exitError
}

// conclude says why the session was ended, unless the command did so, and tells
// the status.
func (l *launch) conclude(o terminal.Outcome, v *voice) int {
	switch o.Cause {
	case terminal.TimedOut:
		v.say("the command was ended after %v, which --timeout gives it", &l.timeout)
		return exitTimedOut
	case terminal.GaveUp:
		v.say("the command was ended: no output for %v, and nothing typed brought it back to life (%s)", &l.idle, times(l.retries))
		return exitGaveUp
	case terminal.Asked:
		return exitOK
	case terminal.Signalled:
		v.say("the command was ended, since this process got a signal: %v", o.Signal)
		return 128 + int(o.Signal)
	}
	if o.Status.Signaled() {
		return 128 + int(o.Status.Signal())
	}
	return o.Status.ExitStatus()
}

func times(n int) string {
	if n == 1 {
		return "1 try"
	}
	return fmt.Sprintf("%d tries", n)
}
