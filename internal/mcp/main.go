package mcp

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/mcp/page"
)

// Main is the whole command; it does not return.
func Main() { os.Exit(Run(os.Args[1:], cli.StandardStreams(page.CommandName))) }

var actions = page.Actions{Serve: serve, Config: printConfig}

// Run is the command with these arguments. It returns the exit status.
func Run(args []string, s cli.Streams) (status int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(s.Err, "%s: internal error: %v: please report it with this:\n%s", s.Command, p, debug.Stack())
			status = cli.ExitError
		}
	}()
	raw := s
	s = s.OnScreen()
	s.Err = layout.Sentences(s.Err)
	list := page.All(actions)
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:len(args):len(args)], "--help")
	}
	if args = cli.VerbFirst(args, list); len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		v, found := cli.Find(list, args[0])
		if !found {
			s.Complain(fmt.Errorf("%w (see %s --help)", cli.UnknownVerb(args[0], cli.Names(list)), page.CommandName))
			return cli.ExitError
		}
		return v.Run(args[1:], s)
	}
	return runOwn(args, s, raw)
}

// runOwn serves the process at the other end of stdin and stdout.
func runOwn(args []string, s, raw cli.Streams) int {
	o := &page.Flags{}
	flags := o.Set()
	err := cli.FlagError(flags.Parse(args), flags)
	switch {
	case err != nil:
	case o.Help:
		return s.Show(page.Page().Help())
	case o.Version:
		return s.Show(cli.VersionLine(page.CommandName) + "\n")
	case flags.NArg() > 0: // behind --
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	default:
		err = o.Check()
	}
	if err != nil {
		s.Complain(fmt.Errorf("%w (see %s --help)", err, page.CommandName))
		return cli.ExitError
	}
	if err := stdio(context.Background(), o, raw); err != nil {
		s.Complain(err)
		return cli.ExitError
	}
	return cli.ExitOK
}

// printConfig prints what has a client start this command with these flags.
func printConfig(o *page.Flags, s cli.Streams) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this command's own path: %w", err)
	}
	config, err := page.Config(self, o)
	if err != nil {
		return err
	}
	_, err = s.Out.Write(config)
	return err
}
