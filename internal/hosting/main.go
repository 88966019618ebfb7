// Package hosting is heartbeat-host, the command that hosts one session of Claude Code
// for a program that may itself restart at any time: one file a verb.
package hosting

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/host/guardian"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/hosting/verbs"
	"heartbeat/internal/notify"
)

// Main is the whole command; it does not return.
func Main() {
	guardian.Serve()
	session.Serve()
	notify.Serve()
	os.Exit(Run(os.Args[1:], cli.StandardStreams(verbs.CommandName)))
}

// Run is the command with these arguments. It returns the exit status.
func Run(args []string, s cli.Streams) (status int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(s.Err, "%s: internal error: %v: please report it with this:\n%s", s.Command, p, debug.Stack())
			status = cli.ExitError
		}
	}()
	if len(args) > 0 && args[0] == hostVerb {
		return serveHost(s)
	}
	if len(args) == 2 && args[0] == session.FinishCommand {
		return finishDir(args[1], s)
	}
	s = s.OnScreen()
	s.Err = layout.Sentences(s.Err)
	return dispatch(args, s)
}

// finishDir finishes the session in a folder, whose host was killed. Somebody who only
// looks into the folder may hold its lock for a moment.
func finishDir(dir string, s cli.Streams) int {
	_, err := session.Finish(context.Background(), dir)
	for tries := 1; errors.Is(err, session.ErrHosted) && tries < 20; tries++ {
		time.Sleep(time.Second)
		_, err = session.Finish(context.Background(), dir)
	}
	if err != nil && !errors.Is(err, session.ErrHosted) && !errors.Is(err, session.ErrFinished) {
		s.Complain(err)
		return cli.ExitError
	}
	return cli.ExitOK
}

// dispatch runs the verb that the arguments name.
func dispatch(args []string, s cli.Streams) int {
	list := verbs.All(actions)
	args = cli.VerbFirst(helpLast(args), list)
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return runOwn(args, s)
	}
	v, found := cli.Find(list, args[0])
	if !found {
		s.Complain(fmt.Errorf("%w (see %s help)", cli.UnknownVerb(args[0], cli.Names(list)), verbs.CommandName))
		return cli.ExitError
	}
	return v.Run(args[1:], s)
}

// helpLast turns `help VERB` into `VERB --help`.
func helpLast(args []string) []string {
	if len(args) < 2 || args[0] != verbs.HelpName || strings.HasPrefix(args[1], "-") {
		return args
	}
	return append(args[1:len(args):len(args)], "--help")
}

// runOwn runs the command without a verb.
func runOwn(args []string, s cli.Streams) int {
	o := &verbs.OwnFlags{}
	flags := o.Set()
	err := cli.FlagError(flags.Parse(args), flags)
	switch {
	case err == nil && flags.NArg() > 0: // behind --
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err != nil:
	case o.Version:
		return s.Show(cli.VersionLine(verbs.CommandName) + "\n")
	default:
		return s.Show(verbs.Overview())
	}
	s.Complain(fmt.Errorf("%w (see %s help)", err, verbs.CommandName))
	return cli.ExitError
}
