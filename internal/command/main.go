// Package command is heartbeat, the command that people and programs type: one file a
// verb.
package command

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/hook"
	"heartbeat/internal/hook/runs"
	"heartbeat/internal/host/guardian"
	"heartbeat/internal/orphans"
)

const commandName = "heartbeat"

// Main is the whole command; it does not return.
func Main() {
	guardian.Serve()
	os.Exit(Run(os.Args[1:], cli.StandardStreams(commandName)))
}

// Run is the command with these arguments. It returns the exit status.
func Run(args []string, s cli.Streams) (status int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(s.Err, "%s: internal error: %v: please report it with this:\n%s", s.Command, p, debug.Stack())
			status = cli.ExitError
		}
	}()
	if len(args) > 0 && args[0] == hook.FullVerb {
		s.Command = hook.CommandName
		return hook.RunFull(args[1:], s, runs.Open)
	}
	if len(args) > 0 && args[0] == standInVerb {
		return runStandIn(args[1:], s)
	}
	s = s.OnScreen()
	s.Err = layout.Sentences(s.Err)
	return dispatch(args, s)
}

// dispatch runs the verb that the arguments name. If heartbeat has no such verb, it
// runs the command heartbeat-VERB.
func dispatch(args []string, s cli.Streams) int {
	if len(args) > 0 && args[0] == idsCommand {
		printIDs(args[1:], s)
		return cli.ExitOK
	}
	list := verbs()
	args = cli.VerbFirst(helpLast(args), list)
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return runOwn(args, list, s)
	}
	if v, found := cli.Find(list, args[0]); found {
		return v.Run(args[1:], s)
	}
	return runExternal(args[0], args[1:], list, s)
}

// helpLast turns `help VERB` into `VERB --help`.
func helpLast(args []string) []string {
	if len(args) < 2 || args[0] != helpName || strings.HasPrefix(args[1], "-") {
		return args
	}
	return append(args[1:len(args):len(args)], "--help")
}

// runOwn runs heartbeat without a verb.
func runOwn(args []string, list []cli.Verb, s cli.Streams) int {
	o := &ownFlags{}
	flags := o.set()
	err := flags.Parse(args)
	var unknown *pflag.NotExistError
	switch {
	case err == nil && flags.NArg() > 0: // behind --
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case errors.As(err, &unknown) && hasFlag(list, unknown.GetSpecifiedName()):
		err = fmt.Errorf("--%s is a flag of verbs, and there is no verb: name one, as in heartbeat send", unknown.GetSpecifiedName())
	case err != nil:
		err = cli.FlagError(err, withFlagsOf(list, flags))
	case o.version:
		return s.Show(cli.VersionLine(commandName) + "\n")
	default:
		return s.Show(overview())
	}
	s.Complain(fmt.Errorf("%w (see heartbeat help)", err))
	return cli.ExitError
}

// hasFlag reports whether any of the verbs has that flag.
func hasFlag(list []cli.Verb, name string) bool {
	return withFlagsOf(list, cli.NewFlags("")).Lookup(name) != nil
}

// withFlagsOf adds the flags of the verbs, and of their own verbs, to all. A name that
// is taken keeps the flag it has.
func withFlagsOf(list []cli.Verb, all *pflag.FlagSet) *pflag.FlagSet {
	for _, v := range list {
		flags, _, _ := v.Built()
		flags.VisitAll(func(f *pflag.Flag) { f.Shorthand = "" }) // it would have to be unique
		all.AddFlagSet(flags)
		withFlagsOf(v.Verbs, all)
	}
	return all
}

func recoverVerb() cli.Verb { return withProgress(orphans.Verb(commandName), "recovering") }
