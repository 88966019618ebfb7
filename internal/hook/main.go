// Package hook is heartbeat-stop: one Stop of a session, from the client's input to the decision that it reads.
//
// As a hook it prints only the protocol on stdout. With status 2, which has Claude Code feed stderr to the model, it exits
// only to hand an entry over.
package hook

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
)

// Main runs the command and exits.
func Main() {
	os.Exit(Run(os.Args[1:], cli.StandardStreams(CommandName)))
}

// Run runs the command with these arguments and returns its exit status.
func Run(args []string, s cli.Streams) int { return RunFull(args, s, nil) }

// RunFull is [Run] for a program that links the driver of babysitter runs. Run starts that program when it needs it.
func RunFull(args []string, s cli.Streams, open OpenRuns) (status int) {
	// On a processor that exit.s does not know, a panic in another goroutine would exit with status 2. This makes it
	// abort by a signal instead.
	debug.SetTraceback("crash")
	defer s.Caught(&status)
	if len(args) == 1 && args[0] == "help" {
		args = []string{"--help"}
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") { // a verb, which the full command has
		program, err := findFull()
		if err == nil {
			err = cli.Become(program, args)
		}
		s.Complain(fmt.Errorf("%w (see %s --help)", err, s.Command))
		return cli.ExitError
	}
	return runHook(args, s, open)
}

const (
	// How long a hook waits for the inbox's lock. The client reports the end of a turn once, so the hook waits nearly as
	// long as clients let hooks run: 10 minutes, or one minute for clients too old to name a prompt. At other events a
	// session or a person waits for the hook.
	turnLockWait    = 9 * time.Minute
	oldTurnLockWait = 45 * time.Second
	eventLockWait   = 5 * time.Second
)

// runHook is the command without a verb. Whatever fails, the stop is approved: stdout stays empty.
func runHook(args []string, s cli.Streams, open OpenRuns) int {
	h := &hook{voice: voice{Streams: s}, carried: carried{Began: machine.SinceBoot(), Parent: os.Getppid()}, call: call{open: open, args: args}}
	h.openStdin()
	if err := h.takeOver(); err != nil {
		s.Complain(fmt.Errorf("%w: the stop is approved and nothing was changed", err))
		return cli.ExitError
	}
	flags := h.Set()
	err := cli.FlagError(flags.Parse(h.args))
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
	return h.run(h.open == nil && (len(h.Runs.Dirs) > 0 || flags.Changed("babysitter")))
}

// run acts on the event. full says that it takes the full command, except at the event after each batch of tools.
func (h *hook) run(full bool) int {
	var err error
	if !h.NoInput {
		if h.input, err = h.readInput(); err != nil {
			h.Complain(fmt.Errorf("%w: the stop is approved and nothing was changed", err))
			h.explainToPerson()
			return cli.ExitError // no turn is known to end, so the launcher gets no signal either
		}
	}
	if full && (h.input == nil || h.input.Event != claude.EventPostToolBatch) {
		return h.failed(h.becomeFull())
	}
	if h.box, err = cli.OpenInbox(h.Inbox, inbox.Options{LockWait: h.lockWait(), Lock: h.Lock}); err != nil {
		return h.failed(err)
	}
	if of := os.Getenv(cli.LaunchedVariable); of != "" && !h.Launched {
		// A launcher gave the session a hook of its own, to which a hook from the project's settings leaves every event.
		// For another inbox it would deliver into a session that works for the launcher's, and keep it from ending.
		if !inbox.SameInbox(of, h.box.Path()) {
			h.Note("this session works for %s, by way of heartbeat-launch: the hook of %s does nothing in it", of, h.box.Path())
		}
		return cli.ExitOK
	}
	h.addTaskReports()
	if h.open != nil {
		h.runs = h.open(Surroundings{
			Flags: &h.Flags, Input: h.input, Box: h.box, Age: h.age,
			Note:         func(format string, args ...any) { h.Note(format, args...) },
			Complain:     func(err error) { h.Complain(err) },
			Ask:          h.runsAsk,
			ComplainOnce: func(err error) { h.complainOnce(err) },
			PollAgainIn:  h.pollAgainIn,
		})
	}
	return h.dispatch()
}

func (h *hook) lockWait() time.Duration {
	in := h.input
	if in == nil {
		return oldTurnLockWait
	}
	// The fate of an entry that is its client's prompt depends on these events, and no terminal waits for them.
	ofStart := h.Start != "" && (in.Event == claude.EventSessionStart || in.Event == claude.EventUserPromptSubmit)
	switch {
	case !h.endsTurn() && !ofStart:
		return eventLockWait
	case in.PromptID != "":
		return turnLockWait
	}
	return oldTurnLockWait
}

// dispatch acts on the event. It ignores the events of subagents, which answer no entry, and unknown events.
func (h *hook) dispatch() int {
	in := h.input
	if in == nil {
		return h.stop()
	}
	if in.Event == claude.EventPostToolBatch {
		return h.betweenRequests()
	}
	if in.AgentID != "" {
		return cli.ExitOK
	}
	if in.Event == claude.EventSessionStart && in.Source == "compact" {
		return cli.ExitOK // the session continues in the same process
	}
	if h.runs != nil {
		if shown := h.runs.Greet(); shown != "" && !h.Rewake { // a hook in the background shows nothing
			if err := claude.WriteMessage(h.Out, "heartbeat: "+words.Brief(shown)); err != nil {
				h.Complain(fmt.Errorf("show how the run stands: %w", err))
			}
		}
	}
	if in.Event == claude.EventStop || in.Event == "" {
		if h.othersContinue() {
			if h.Rewake && h.SignalFile == "" {
				return cli.ExitOK // no hook in the background can end the turn at a limit
			}
			return h.betweenRequests()
		}
		h.awaitSpending()
	}
	wakes := h.Rewake && h.client().CanBeWoken()
	switch in.Event {
	case claude.EventStop, "":
		if h.Rewake {
			return h.wakeLater(h.endTurn)
		}
		return h.stop()
	case claude.EventStopFailure:
		if wakes {
			return h.wakeLater(h.failTurn)
		}
		return h.stopFailure()
	case claude.EventSessionStart:
		if wakes {
			return h.wakeLater(h.startSession)
		}
		return h.record(h.noteStart)
	case claude.EventSessionEnd:
		return h.record(h.endSession)
	case claude.EventUserPromptSubmit:
		switch {
		case h.Rewake:
			return h.record(h.notePrompt)
		case h.Start != "":
			return h.record(h.bindPrompt)
		case claude.IsTaskReport(in.Prompt):
			return h.record(h.bindTaskReport)
		case in.PromptID == "": // without an id, this turn could be the one that was stopped
			return h.record(func(tx *inbox.Tx) error { tx.In(in.SessionID).ForgetStopped(); return nil })
		}
		return h.otherPrompt()
	case claude.EventNotification:
		return h.noteQuestion()
	case claude.EventSubagentStop:
	default: // a line wired by hand, or another client's name for a turn's end
		h.Note("the hook does nothing at the event %s: wire it to Stop, as heartbeat install does", words.Brief(in.Event))
	}
	return cli.ExitOK
}
