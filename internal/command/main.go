// Package command is heartbeat, the command that people and programs type: one file a
// verb.
package command

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
	"heartbeat/internal/host/guardian"
	"heartbeat/internal/orphans"
)

const commandName = "heartbeat"

// hookVerb is the hook, for a demo that is run before anything is installed. No list
// has it.
const hookVerb = "__stop"

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
	switch {
	case len(args) == 0 || args[0] == "help" && len(args) == 1:
		return runOwn(nil, s)
	case args[0] == hookVerb:
		s.Command = hook.CommandName
		return hook.Run(args[1:], s)
	case strings.HasPrefix(args[0], "-"):
		return runOwn(args, s)
	}
	return runVerb(args[0], args[1:], s)
}

// runOwn is heartbeat without a verb.
func runOwn(args []string, s cli.Streams) int {
	o := &ownFlags{}
	err := o.set().Parse(args)
	switch {
	case err != nil:
		s.Complain(fmt.Errorf("%w (see heartbeat help)", err))
		return cli.ExitError
	case o.version:
		fmt.Fprintln(s.Out, cli.VersionLine(commandName))
	default:
		fmt.Fprint(s.Out, commandPage().Help())
	}
	return cli.ExitOK
}

// verbs are all of them, in the order in which help lists them.
func verbs() []cli.Verb {
	list := []cli.Verb{
		sendVerb(), cancelVerb(), resultsVerb(),
		statusVerb(), peekVerb(), logVerb(), metricsVerb(),
		pauseVerb(), resumeVerb(), orphans.Verb(commandName),
		deadLetterVerb(), compactVerb(),
		runsVerb(), orchestrateVerb(), resultVerb(), breakpointVerb(),
		installVerb(), uninstallVerb(), doctorVerb(),
		demoVerb(), completionVerb(), versionVerb(),
	}
	return append(list, manVerb(list))
}

func runVerb(name string, args []string, s cli.Streams) int {
	s = s.OnScreen()
	if name == idsCommand {
		printIDs(args, s)
		return cli.ExitOK
	}
	v, err := findVerb(name)
	if err != nil {
		s.Complain(fmt.Errorf("%w (see heartbeat help)", err))
		return cli.ExitError
	}
	return v.Run(args, s)
}

func findVerb(name string) (cli.Verb, error) {
	list := verbs()
	if v, found := cli.Find(list, name); found {
		return v, nil
	}
	return cli.Verb{}, cli.UnknownVerb(name, cli.Names(list))
}
