package hook

import (
	"errors"
	"fmt"
	"os"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/host"
)

const (
	idleTick = "--- IDLE TICK ---"

	// How long a hook waits for the inbox's lock. The end of a turn is told once, so
	// it waits nearly for as long as clients let their hooks run: 10 minutes, and a
	// minute where they are so old that they name no prompt. With other events, a
	// session or a person waits for the hook.
	turnLockWait    = 9 * time.Minute
	oldTurnLockWait = 45 * time.Second
	eventLockWait   = 5 * time.Second
)

// hook is one run of the command as a hook.
type hook struct {
	Flags
	voice
	recheck
	lifeline
	box   *inbox.Inbox
	input *claude.Input // nil with --no-input
	began int64         // host.SinceBoot at the start
	// paused is what was last said of a pause: a waiting hook says it once.
	paused string
	// waiter is the name by which this hook waits in the background, and wakeText
	// what it then wakes the session with.
	waiter, wakeText string
	offer            *offer // nil before the first
	// settled is the entry that the transaction settles, nil for none.
	settled *inbox.Delivery
	// answered is that entry where it is settled as answered.
	answered *inbox.Delivery
	// says is what the person is shown of the entry that is delivered, "" for nothing.
	says string
	// lastSettled is the id of the last one that this hook settled.
	lastSettled string
	// open opens runs, which are nil before that. Both are nil in the lean hook.
	open   OpenRuns
	runs   Runs
	args   []string
	raw    *rawInput // nil before the input was read
	handed *handover // nil where the hook began in this process
	// waits says that the hook is committed to be the one that waits in the background.
	waits bool
	// idleUntil is when persist ends the turn with an idle tick (host.SinceBoot), 0
	// before it waits.
	idleUntil int64
	watched   transcriptWatch
	kept      keptEvidence
}

// runHook is the command without a verb. Whatever fails, the stop is approved:
// stdout stays empty.
func runHook(args []string, s cli.Streams, open OpenRuns) int {
	h := &hook{voice: voice{Streams: s}, open: open, began: host.SinceBoot(), lifeline: lifeline{parent: os.Getppid()}}
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
		return cli.ExitError
	}
	if h.open == nil && needsRuns(&h.Flags, flags.Changed) {
		err = h.becomeFull()
	}
	return h.run(err)
}

// run acts on the event, unless a failure keeps it from that.
func (h *hook) run(failure error) int {
	var err error
	if h.raw = new(rawInput); !h.NoInput {
		if h.input, err = h.readInput(); err != nil {
			return h.untold(err)
		}
	}
	if failure != nil {
		return h.failed(failure)
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
	case in != nil && !h.endsTurn():
		return eventLockWait
	case in != nil && in.PromptID != "":
		return turnLockWait
	}
	return oldTurnLockWait
}

// end closes a transaction, and says what it found.
func (h *hook) end(tx *inbox.Tx) error {
	if due := tx.NextDue(); !due.IsZero() {
		h.lookAgainIn(time.Until(due))
	}
	for _, w := range tx.Warnings() {
		h.Note("%s", w)
	}
	return tx.Close()
}

// failed approves the stop because of an error.
func (h *hook) failed(err error) int {
	if errors.Is(err, errNotPrinted) {
		h.Complain(fmt.Errorf("%w: the stop is approved", err))
	} else {
		h.Complain(fmt.Errorf("%w: the stop is approved and nothing was changed", err))
	}
	return h.signal()
}

// approve ends the turn: an empty stdout, and the signal for the launcher.
func (h *hook) approve() int { return h.signal() }

func (h *hook) signal() int {
	if h.SignalFile == "" || h.input != nil && !h.endsTurn() {
		return cli.ExitOK
	}
	if err := disk.Touch(h.SignalFile); err != nil {
		h.Complain(fmt.Errorf("touch the signal file: %w", err))
	}
	return cli.ExitOK
}

func (h *hook) endsTurn() bool {
	return h.input.Event == claude.EventStop || h.input.Event == "" || h.input.Event == claude.EventStopFailure
}
