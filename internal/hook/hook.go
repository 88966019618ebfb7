package hook

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
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
	began    int64         // machine.SinceBoot at the start
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
	raw    []byte    // the input as it was read, kept for the full command
	read   bool      // that stdin was read, if there was anything
	handed *handover // nil where the hook began in this process
	// waits says that the hook is committed to be the one that waits in the background.
	waits bool
	// idleUntil is when persist ends the turn with an idle tick (machine.SinceBoot), 0
	// before it waits.
	idleUntil int64
	watched   transcriptWatch
	kept      keptEvidence
	cut       bool      // the transcript is shorter than it was
	charged   *inbox.Tx // the transaction that has charged this session
	// clientIs is the client's process once it was sought.
	clientIs       int
	clientSought   bool
	uncountedBatch uncounted
	gate           gate
	checking       checking
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
func (h *hook) age() time.Duration { return time.Duration(machine.SinceBoot() - h.began) }

// voice is what the hook says on stderr.
type voice struct {
	cli.Streams
	complained string           // the error that was said last
	aside      []inbox.SetAside // not yet said
}

// keptNotes keeps what is said while nobody may hear it, up to a bound: a hook in
// the background may live for weeks.
type keptNotes struct{ bytes.Buffer }

func (k *keptNotes) Write(b []byte) (int, error) {
	const most = 64 << 10
	if k.Len()+len(b) <= most {
		return k.Buffer.Write(b)
	}
	return len(b), nil
}

// complainOnce leaves out what was said last, and reports whether it did not.
func (v *voice) complainOnce(err error) bool {
	said := err.Error()
	if said == v.complained {
		return false
	}
	v.complained = said
	v.Complain(err)
	return true
}

// hold keeps back what is said of a transaction that may be dropped: the full
// command, which then looks again, says it. The function that it returns ends that.
func (v *voice) hold() (say func(bool)) {
	stderr, held := v.Err, new(bytes.Buffer)
	v.Err = held
	return func(is bool) {
		if v.Err = stderr; is {
			_, _ = held.WriteTo(stderr) // nobody is left to tell
		}
	}
}

// noteAside says what was set aside since it was said last.
func (v *voice) noteAside() {
	for _, s := range v.aside {
		v.Note("%s", s)
	}
	v.aside = nil
}
