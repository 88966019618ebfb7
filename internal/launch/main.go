// Package launch is the command heartbeat-launch: it runs a command in a terminal of
// its own until the command ends or has to be ended, and leaves no process of it behind.
// With an inbox it runs sessions of that command until the inbox is drained.
package launch

import (
	"io"
	"os"
	"runtime/debug"

	"heartbeat/internal/cli"
	"heartbeat/internal/host/guardian"
	"heartbeat/internal/host/signals"
	"heartbeat/internal/notify"
)

// Main is the whole command; it does not return.
func Main() {
	guardian.Serve()
	notify.Serve()
	os.Exit(launch(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

func launch(args []string, s streams) (status int) {
	taken := signals.Take()
	defer taken.Stop()
	m := newMessages(s.err)
	defer m.finish()
	defer func() {
		if p := recover(); p != nil {
			m.say("internal error: %v: please report it with this:\n%s", p, debug.Stack())
			status = exitError
		}
	}()
	line := newCommandLine()
	err := cli.FlagError(line.set.Parse(args), line.set)
	switch {
	case err != nil:
	case line.help:
		return show(m, s.out, Page().Help())
	case line.manual:
		return show(m, s.out, Page().Manual())
	case line.version:
		return show(m, s.out, cli.VersionLine(CommandName)+"\n")
	default:
		err = line.check()
	}
	if err != nil {
		m.say("%v (see %s --help)", err, CommandName)
		return exitError
	}
	return line.run(s, m, taken)
}

func show(m *messages, out io.Writer, text string) int {
	if _, err := io.WriteString(out, text); err != nil {
		m.say("print it: %v", err)
		return exitError
	}
	return exitOK
}
