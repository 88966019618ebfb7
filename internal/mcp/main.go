package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	config, err := Config(o)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "%s\n", text)
	return err
}

// ServerName is what clients call the server: its tools are mcp__heartbeat__task_done and so
// on.
const ServerName = "heartbeat"

// Config is the configuration of a client.
func Config(o *page.Flags) (any, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this command's own path: %w", err)
	}
	if o.Inbox == "" {
		return nil, cli.ErrNoInbox
	}
	path, err := filepath.Abs(o.Inbox)
	if err != nil {
		return nil, err
	}
	args := []string{"--inbox", path, "--role", o.Role}
	if o.Role == page.Agent {
		args = append(args, "--rate", fmt.Sprint(o.Rate))
	}
	to, err := page.Named(o.To)
	for _, one := range to {
		absolute, wrong := filepath.Abs(one.Path)
		err = errors.Join(err, wrong)
		args = append(args, "--to", one.Name+"="+absolute)
	}
	// Without alwaysLoad the client hides the tools behind a search.
	server := map[string]any{"type": "stdio", "command": self, "args": args, "alwaysLoad": true}
	return map[string]any{"mcpServers": map[string]any{ServerName: server}}, err
}
