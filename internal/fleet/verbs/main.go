package verbs

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/page"
)

// Main is the whole command; it does not return.
func Main() {
	s := cli.StandardStreams(page.CommandName)
	if link.StartServer == nil && embeds(os.Args[1:]) {
		s.Complain(becomeServer())
		os.Exit(cli.ExitError)
	}
	os.Exit(Run(os.Args[1:], s))
}

// embeds reports whether the arguments ask for --embed.
func embeds(args []string) bool {
	for _, a := range args {
		switch {
		case a == "--":
			return false
		case a == "--embed", strings.HasPrefix(a, "--embed="):
			return true
		}
	}
	return false
}

// becomeServer goes on as the command that has a server. It returns why it cannot.
func becomeServer() error {
	path, err := cli.Beside(page.CommandName + "-embed")
	if err == nil {
		err = syscall.Exec(path, slices.Concat([]string{path}, os.Args[1:]), os.Environ())
	}
	return fmt.Errorf("be a server for --embed: %w", err)
}

// Run is the command with these arguments. It returns the exit status.
func Run(args []string, s cli.Streams) (status int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(s.Err, "%s: internal error: %v: please report it with this:\n%s", s.Command, p, debug.Stack())
			status = cli.ExitError
		}
	}()
	s = s.OnScreen()
	s.Err = layout.Sentences(s.Err)
	return dispatch(args, s)
}

// dispatch runs the verb that the arguments name.
func dispatch(args []string, s cli.Streams) int {
	list := page.All(actions)
	args = cli.VerbFirst(helpLast(args), list)
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return runOwn(args, s)
	}
	v, found := cli.Find(list, args[0])
	if !found {
		s.Complain(fmt.Errorf("%w (see %s help)", cli.UnknownVerb(args[0], cli.Names(list)), page.CommandName))
		return cli.ExitError
	}
	return v.Run(args[1:], s)
}

// helpLast turns `help VERB` into `VERB --help`.
func helpLast(args []string) []string {
	if len(args) < 2 || args[0] != page.HelpName || strings.HasPrefix(args[1], "-") {
		return args
	}
	return append(args[1:len(args):len(args)], "--help")
}

// runOwn runs the command without a verb.
func runOwn(args []string, s cli.Streams) int {
	o := &page.OwnFlags{}
	flags := o.Set()
	err := cli.FlagError(flags.Parse(args), flags)
	switch {
	case err == nil && flags.NArg() > 0: // behind --
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err != nil:
	case o.Version:
		return s.Show(cli.VersionLine(page.CommandName) + "\n")
	default:
		return s.Show(page.Overview())
	}
	s.Complain(fmt.Errorf("%w (see %s help)", err, page.CommandName))
	return cli.ExitError
}
