package hook

import (
	"errors"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/host"
)

const (
	idleTick = "--- IDLE TICK ---"
)

// CommandName is what the hook is called where it is installed.
const CommandName = "heartbeat-stop"

// errNotPrinted says that the client got no decision.
var errNotPrinted = errors.New("print the decision")

// hook is one run of the command as a hook.
type hook struct {
	Flags
	voice
	recheck
	lifeline
	notifier notifier
	box      *inbox.Inbox
	input    *claude.Input // nil with --no-input
	began    int64         // host.SinceBoot at the start
	// paused is what was last said of a pause: a waiting hook says it once.
	paused string
	// waiter is this hook's name while it waits in the background, and wakeText is what
	// it wakes the session with.
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
	account   turnAccount
	// clientIs is the client's process once it was sought.
	clientIs     int
	clientSought bool
	counting     counting
	gate         gate
}

// end closes a transaction, and says what it found.
func (h *hook) end(tx *inbox.Tx) error {
	if due := tx.NextDue(); !due.IsZero() {
		h.lookAgainIn(time.Until(due))
	}
	for _, w := range tx.Warnings() {
		h.Note("%s", w)
	}
	err := tx.Close()
	h.tellOf(tx)
	return err
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

// ended leaves without a decision. The status of a signal is the shell's.
func (h *hook) ended(cause error) int {
	h.Note("%v: nothing was taken", cause)
	var by cli.EndedBy
	if errors.As(cause, &by) {
		return 128 + int(by.Signal)
	}
	return cli.ExitOK
}

// age is for how long this hook has run.
func (h *hook) age() time.Duration { return time.Duration(host.SinceBoot() - h.began) }
