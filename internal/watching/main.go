// Package watching is the command heartbeat-watch: it shows inboxes in a terminal, and
// keeps the view up to date. What is known is gathered in look, what is shown and what
// keys do is in board, and draw draws that.
package watching

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/watching/finder"
	"heartbeat/internal/watching/page"
)

// Main is the whole command; it does not return.
func Main() { os.Exit(Run(os.Args[1:], cli.StandardStreams(page.CommandName))) }

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
	o := &page.Flags{}
	flags := o.Set()
	err := cli.FlagError(flags.Parse(args), flags)
	switch {
	case err != nil:
	case o.Help:
		return s.Show(page.Page().Help())
	case o.Manual:
		return s.Show(page.Page().Manual())
	case o.Version:
		return s.Show(cli.VersionLine(page.CommandName) + "\n")
	default:
		err = o.Check()
	}
	if err != nil {
		s.Complain(fmt.Errorf("%w (see %s --help)", err, page.CommandName))
		return cli.ExitError
	}
	f := finder.New(roots(o, flags.Args())...)
	if o.Once {
		err = once(o, f, s)
	} else {
		err = live(o, f, raw)
	}
	return conclude(err, s)
}

// roots are where to search.
func roots(o *page.Flags, dirs []string) []string {
	if len(dirs) > 0 && !o.Set().Changed("inbox") {
		return dirs
	}
	if o.Inbox != "" {
		return append([]string{o.Inbox}, dirs...)
	}
	return []string{"."}
}

func conclude(err error, s cli.Streams) int {
	var by cli.EndedBy
	switch {
	case err == nil:
		return cli.ExitOK
	case errors.As(err, &by):
		return 128 + int(by.Signal)
	}
	s.Complain(err)
	return cli.ExitError
}
