package launch

import (
	"errors"
	"os"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/host/signals"
	"heartbeat/internal/launch/managed"
	"heartbeat/internal/launch/terminal"
)

// commandLine is what was typed: flags, and after them the command to run.
type commandLine struct {
	set     *pflag.FlagSet
	command commandFlags
	inbox   inboxFlags

	help, manual, version bool
}

// newCommandLine declares the flags. They end where the command begins, with or
// without `--`.
func newCommandLine() *commandLine {
	c := &commandLine{set: cli.NewFlags(CommandName)}
	c.set.SetInterspersed(false)
	c.command.add(c.set)
	c.inbox.add(c.set)
	c.set.BoolVar(&c.manual, "man", false, "print this as a manual page, for man -l -")
	c.set.BoolVar(&c.version, "version", false, "show the version")
	c.set.BoolVarP(&c.help, "help", "h", false, "show this help")
	return c
}

// check refuses what cannot be meant.
func (c *commandLine) check() error {
	if c.set.NArg() == 0 || c.set.Arg(0) == "" {
		return errors.New("no command: name it after the flags, as in " + CommandName + " -- claude")
	}
	if err := c.command.check(c.set); err != nil {
		return err
	}
	return c.inbox.check(c.set, c.set.Args())
}

// run runs the command, or sessions of it that work through an inbox.
func (c *commandLine) run(s streams, m *messages, taken *signals.Taken) int {
	o, err := c.options(s, m, taken)
	if err != nil {
		m.say("%v", err)
		return exitError
	}
	if c.inbox.path != "" {
		w := inboxWork{flags: &c.inbox, terminal: o, recording: c.command.recording, streams: s, messages: m}
		return w.run()
	}
	if c.inbox.output == showNone {
		o.Stdout = nil
	}
	return c.command.run(o, m)
}

// options are how a terminal runs the command.
func (c *commandLine) options(s streams, m *messages, taken *signals.Taken) (terminal.Options, error) {
	o, withoutCI, err := c.command.options(c.set, os.Environ())
	if err != nil {
		return o, err
	}
	if withoutCI && c.inbox.output != showMail { // nobody needs a mail about it
		m.say("CI is taken out of the command's environment, since it says that nobody is at the terminal (--keep-env keeps it)")
	}
	if c.inbox.mode == string(managed.Persist) && !c.set.Changed("timeout") {
		o.Timeout = 0
	}
	o.Stdin, o.Stdout, o.Stderr, o.Signals, o.Note = s.in, s.out, s.err, taken, m.say
	return o, nil
}
