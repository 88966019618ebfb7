// Package launch is the command heartbeat-launch. It runs a command in a terminal of its own until the command
// ends or has to be ended, and leaves no process behind. With an inbox it runs sessions of the command until the
// inbox is drained.
package launch

import (
	"io"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"heartbeat/internal/cli"
	"heartbeat/internal/consumer"
	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/notify"
	"heartbeat/internal/supervise/terminal"
)

// CommandName is the installed name of the launcher.
const CommandName = "heartbeat-launch"

type streams struct{ in, out, err *os.File }

// Main runs the command and does not return.
func Main() {
	guardian.Serve()
	notify.Serve()
	consumer.Serve()
	if !canOpen(fewest) {
		_, _ = os.Stderr.WriteString(CommandName + ": this process may open too few files to begin: raise its limit (ulimit -n)\n")
		os.Exit(cli.ExitLater)
	}
	os.Exit(launch(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// fewest is how many files Go opens before the launcher can print. Without them Go exits with a status of its own.
const fewest = 8

// canOpen reports whether n files can be opened.
func canOpen(n int) bool {
	if n == 0 {
		return true
	}
	fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return !machine.Passes(err) // there is no stdin, as in a daemon
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	return canOpen(n - 1)
}

func launch(args []string, s streams) (status int) {
	taken := signals.Catch()
	defer taken.Stop()
	console := terminal.NewConsole(s.out)
	m := newMessages(s.err, console)
	defer func() { m.finish() }() // redirect may have replaced the queue
	defer func() {
		if p := recover(); p != nil {
			m.say("internal error: %v: please report it with this:\n%s", p, debug.Stack())
			status = cli.ExitError
		}
	}()
	if len(args) == 1 && args[0] == "help" {
		args = []string{"--help"}
	}
	f := newFlags()
	err := cli.FlagError(f.set.Parse(args))
	switch {
	case err != nil:
	case f.help:
		return show(m, s.out, Page().Help())
	case f.helpAll:
		return show(m, s.out, Page().HelpAll())
	case f.version:
		return show(m, s.out, cli.VersionLine(CommandName)+"\n")
	default:
		err = f.check()
	}
	if err != nil {
		m.say("%v (see %s --help)", err, CommandName)
		return cli.ExitError
	}
	f.work.Terminal.Console = console
	return (&launcher{flags: f, streams: s, messages: m}).run(taken)
}

func show(m *messages, out io.Writer, text string) int {
	if _, err := io.WriteString(out, text); err != nil {
		m.say("print it: %v", err)
		return cli.ExitError
	}
	return cli.ExitOK
}
