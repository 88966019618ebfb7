// Package command is heartbeat, the command that people and programs type: one file a verb.
package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/hook"
	"heartbeat/internal/hook/runs"
	"heartbeat/internal/launch"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/mcp"
	"heartbeat/internal/watch"
)

const commandName = "heartbeat"

// Main is the whole command; it does not return.
func Main() {
	guardian.Serve()
	args := os.Args[1:]
	switch name := filepath.Base(os.Args[0]); name {
	case "heartbeat-watch", "heartbeat-mcp": // links by the names that these verbs had as commands
		args = append([]string{strings.TrimPrefix(name, commandName+"-")}, args...)
	}
	os.Exit(Run(args, cli.StandardStreams(commandName)))
}

// Run runs the command with these arguments, and returns the exit status.
func Run(args []string, s cli.Streams) (status int) {
	defer s.Caught(&status)
	if len(args) > 0 && args[0] == hook.FullVerb {
		s.Command = hook.CommandName
		return hook.RunFull(args[1:], s, runs.Open)
	}
	if len(args) > 0 && args[0] == standInVerb {
		return runStandIn(args[1:], s)
	}
	s = s.OnScreen()
	s.Err = layout.Sentences(s.Err)
	return heartbeat().Run(args, s)
}

// heartbeat returns the command, with its verbs in the order in which help lists them.
func heartbeat() program.Program {
	watchVerb := watch.Verb(func(ctx context.Context, box *inbox.Inbox) (any, error) { return readStatus(ctx, box) })
	mcpVerb := mcp.Verb(func(args []string, s cli.Streams) int { return heartbeat().Run(args, s) })
	return program.Program{
		Name:  commandName,
		Short: "work through an inbox with Claude Code sessions",
		Long: `heartbeat sends entries to a JSONL inbox, shows what became of them, and wires
Claude Code to work through them, one turn each.`,
		Example: firstSteps("\n"),
		Bare:    fmt.Sprintf(firstScreen, firstSteps("\n  ")),
		Groups: []program.Group{
			{Title: "Send and read", Verbs: []cli.Verb{sendVerb, askVerb, resultsVerb, checkVerb, statusVerb, costsVerb, peekVerb, logVerb, metricsVerb, notifyVerb, watchVerb, mcpVerb}},
			{Title: "Steer", Verbs: []cli.Verb{pauseVerb, resumeVerb, stopVerb, cancelVerb, attachVerb}},
			{Title: "Recover and tidy up", Verbs: []cli.Verb{recoverVerb, deadLetterVerb, compactVerb, fsckVerb}},
			{Title: "Babysitter runs", Verbs: []cli.Verb{runsVerb, orchestrateVerb, resultVerb, breakpointVerb}},
			{Title: "Set up", Verbs: []cli.Verb{initVerb, installVerb, uninstallVerb, doctorVerb, demoVerb}},
		},
		Beside: []program.Beside{
			{Name: "launch", Short: "run sessions where nobody is at the terminal", Page: launch.Page},
			{Name: "host", Short: "host sessions for a program that may restart at any time"},
			{Name: "nats", Short: "many agents on many machines, one message answered once"},
			{Name: "hook", Command: "stop", Short: "the Stop hook, which Claude Code calls", Page: hook.Page},
		},
		IDs: listIDs,
	}
}

// firstScreen is what heartbeat shows without a verb: the verbs of the main job.
const firstScreen = `heartbeat sends entries to a JSONL inbox, shows what became of them, and wires
Claude Code to work through them, one turn each.

  heartbeat launch    run sessions that work through the inbox
  heartbeat send      append entries to the inbox
  heartbeat status    show what waits, what runs, and what is wrong
  heartbeat results   show the answers
  heartbeat init      set a project up, once
  heartbeat doctor    find out why nothing happens

In a project of yours:

  %s

heartbeat help lists all verbs, and heartbeat VERB --help explains one.
`
