// Package hook is heartbeat-stop: one Stop of a session, from what the client tells to
// the decision that it reads.
//
// As a hook it prints nothing but the protocol on stdout, and exits with status 2, by
// which Claude Code feeds stderr to the model, only to hand an entry over.
package hook

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
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
	defer s.Caught(&status)
	if len(args) == 1 && args[0] == "help" {
		args = []string{"--help"}
	}
	switch {
	case len(args) == 0 || strings.HasPrefix(args[0], "-"):
		return runHook(args, s, open)
	case args[0] == "recover":
		return RecoverVerb(CommandName).Run(args[1:], s.OnScreen())
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

const (
	// How long a hook waits for the inbox's lock. The end of a turn is told once, so
	// it waits nearly for as long as clients let their hooks run: 10 minutes, and a
	// minute where they are so old that they name no prompt. With other events, a
	// session or a person waits for the hook.
	turnLockWait    = 9 * time.Minute
	oldTurnLockWait = 45 * time.Second
	eventLockWait   = 5 * time.Second
)

// runHook is the command without a verb. Whatever fails, the stop is approved:
// stdout stays empty.
func runHook(args []string, s cli.Streams, open OpenRuns) int {
	h := &hook{voice: voice{Streams: s}, open: open, began: machine.SinceBoot(), lifeline: lifeline{parent: os.Getppid()}}
	o, args, err := cutHandover(args, s.In)
	if err != nil {
		s.Complain(fmt.Errorf("%w: the stop is approved and nothing was changed", err))
		return cli.ExitError
	}
	if h.args = args; o != nil {
		h.takeOver(o)
	}
	return h.start()
}

func (h *hook) start() int {
	s, flags := h.Streams, h.Set()
	err := cli.FlagError(flags.Parse(h.args), flags)
	switch {
	case err != nil:
	case h.Help:
		fmt.Fprint(s.Out, Page().Help())
		return cli.ExitOK
	case h.Version:
		fmt.Fprintln(s.Out, cli.VersionLine(CommandName))
		return cli.ExitOK
	default:
		err = h.Check(flags, flags.Args())
	}
	if err != nil {
		s.Complain(fmt.Errorf("%w (see heartbeat-stop --help)", err))
		if errors.Is(err, cli.ErrNoInbox) && len(h.args) == 0 {
			h.explainToPerson()
		}
		return cli.ExitError
	}
	return h.run(h.open == nil && needsRuns(&h.Flags, flags.Changed))
}

// run acts on the event. full says that it takes the full command, but for the event that
// comes with each use of a tool.
func (h *hook) run(full bool) int {
	var err error
	if h.read = true; !h.NoInput {
		if h.input, err = h.readInput(); err != nil {
			return h.untold(err)
		}
	}
	if full && (h.input == nil || h.input.Event != claude.EventPostToolBatch) {
		return h.failed(h.becomeFull())
	}
	if h.box, err = cli.OpenInbox(h.Inbox, inbox.Options{LockWait: h.lockWait()}); err != nil {
		return h.failed(err)
	}
	if h.standsBack() {
		return cli.ExitOK
	}
	if h.open != nil {
		h.openRuns()
	}
	return h.dispatch()
}

// lockWait is how long this event may wait for the inbox's lock.
func (h *hook) lockWait() time.Duration {
	switch in := h.input; {
	case in != nil && !h.endsTurn() && !h.awaitsPrompt():
		return eventLockWait
	case in != nil && in.PromptID != "":
		return turnLockWait
	}
	return oldTurnLockWait
}

// dispatch acts on the event. An event of a subagent is nobody's answer, and an
// unknown one none of our business: both leave everything as it is.
func (h *hook) dispatch() int {
	in := h.input
	if in == nil {
		return h.stop()
	}
	if in.Event == claude.EventPostToolBatch {
		return h.afterTools()
	}
	if in.AgentID != "" {
		return cli.ExitOK
	}
	if in.Event == claude.EventSessionStart && in.Source == "compact" {
		return cli.ExitOK // the same session goes on in the same process
	}
	if h.runs != nil {
		h.runs.Greet()
	}
	if in.Event == claude.EventStop || in.Event == "" {
		if h.othersGoOn() {
			return cli.ExitOK
		}
		h.awaitSpending()
	}
	if h.Rewake {
		if status, ok := h.inBackground(); ok {
			return status
		}
	}
	switch in.Event {
	case claude.EventStop, "":
		return h.stop()
	case claude.EventStopFailure:
		return h.stopFailure()
	case claude.EventSessionStart:
		return h.record(func(tx *inbox.Tx) error {
			h.chargeStart(tx)
			return tx.StartSessionWith(in.SessionID, h.clientPID(), agent.StartNote(in.TranscriptPath))
		})
	case claude.EventSessionEnd:
		return h.record(h.endSession)
	case claude.EventUserPromptSubmit:
		if h.Start != "" {
			return h.record(h.startedWith)
		}
		if strings.HasPrefix(strings.TrimSpace(in.Prompt), claude.TaskNotification) {
			return h.record(h.toldOfTask)
		}
		if in.PromptID == "" { // nothing else tells this turn from one that was stopped
			return h.record(func(tx *inbox.Tx) error { tx.ForgetStopped(in.SessionID); return nil })
		}
		return h.askedElse()
	case claude.EventNotification:
		return h.notified()
	case claude.EventSubagentStop:
	default: // a line wired by hand, or another client's name for the end of a turn
		h.Note("the hook does nothing at the event %s: wire it to Stop, as heartbeat install does", words.Brief(in.Event))
	}
	return cli.ExitOK
}
