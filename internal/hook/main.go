// Package hook is heartbeat-stop: one Stop of a session, from what the client tells to
// the decision that it reads.
//
// As a hook it prints nothing but the protocol on stdout, and exits with status 2, by
// which Claude Code feeds stderr to the model, only to hand an entry over.
package hook

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"

	"heartbeat/internal/cli"
	"heartbeat/internal/orphans"
)

// Main is the whole command; it does not return.
func Main() {
	os.Exit(Run(os.Args[1:], cli.StandardStreams(CommandName)))
}

// Run is the command with these arguments. It returns the exit status.
func Run(args []string, s cli.Streams) int { return RunFull(args, s, nil) }

// RunFull is [Run] for a program that links what drives babysitter runs. Run starts
// that program where it is needed.
func RunFull(args []string, s cli.Streams, open OpenRuns) (status int) {
	// On a processor that exit.s does not know, a panic in another goroutine would exit
	// with status 2; this makes it abort by signal instead.
	debug.SetTraceback("crash")
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(s.Err, "%s: internal error: %v: please report it with this:\n%s", s.Command, p, debug.Stack())
			status = cli.ExitError
		}
	}()
	switch {
	case len(args) == 0 || strings.HasPrefix(args[0], "-"):
		return runHook(args, s, open)
	case args[0] == "recover":
		return orphans.Verb(CommandName).Run(args[1:], s.OnScreen())
	}
	if slices.Contains(cli.VerbNames, args[0]) {
		s.Note("%[1]s is a verb of heartbeat: %[2]s", args[0], howToType(args[0]))
	} else {
		s.Note("unexpected argument %q: this command is the Stop hook, which Claude Code calls; heartbeat help lists the verbs (see %s --help)", args[0], s.Command)
	}
	return cli.ExitError
}

// howToType says how a verb is called from here. An agent may be told by an entry to
// call this command by its path, with nothing of heartbeat's on PATH.
func howToType(verb string) string {
	command := FullCommand
	if _, err := exec.LookPath(command); err != nil {
		if command, err = cli.Beside(command); err != nil {
			return fmt.Sprintf("%v, and type %s %s", err, FullCommand, verb)
		}
	}
	return fmt.Sprintf("type %[1]s %[2]s (see %[1]s %[2]s --help)", command, verb)
}
