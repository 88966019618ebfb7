package hook

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
)

// CommandName is the hook's installed name.
const CommandName = "heartbeat-stop"

// errNotPrinted is the error if the client got no decision.
var errNotPrinted = errors.New("print the decision")

type hook struct {
	Flags
	carried
	voice
	lifeline
	call
	wait
	settlement
	notifier notifier
	box      *inbox.Inbox
	offer    *offer // nil before the first
	gate     gate
	checking checking
}

// call is how the hook was started, and what it needs to become the full command.
type call struct {
	input    *claude.Input // nil with --no-input
	pid      int           // the client's, once pidKnown is set
	pidKnown bool
	// open opens runs. In the lean hook it is nil, and runs stays nil.
	open  OpenRuns
	runs  Runs
	args  []string
	stdin stdin
	raw   []byte // the input as it was read, for the full command
}

// carried is what the full command must know of the hook that it replaces. It counts as the same hook: it began at the
// same time, serves the same session, and waits as long and under the same name.
type carried struct {
	Began     int64  `json:"began"`      // machine.SinceBoot
	Parent    int    `json:"parent"`     // the process that started this hook; a hook with another parent lost it
	Waiter    string `json:"waiter"`     // the hook's name while it waits in the background
	IdleUntil int64  `json:"idle_until"` // when persist ends the turn with an idle tick (machine.SinceBoot); 0 before the wait
	Paused    string `json:"paused"`     // the last note about a hold: a waiting hook notes each once
	Notes     string `json:"notes"`      // notes that are not printed yet
}

// wait is what the hook remembers while it waits for an entry.
type wait struct {
	wakeText string        // what this hook wakes the session with
	waits    bool          // a commit made this hook the one that waits in the background
	again    time.Duration // until the hook polls although nothing has happened, 0 for never
	// watched is the transcript that may soon show what this Stop means.
	watched struct {
		path     string
		size     int64     // when it was last read
		deadline time.Time // zero before the first wait
	}
}

// settlement is what the hook did with the entry in flight.
type settlement struct {
	settled *inbox.Delivery // by the transaction, nil for none
	// answered is settled if its turn has ended, doubtful if another hook may yet object to its answer; else nil.
	answered, doubtful *inbox.Delivery
	lastSettled        string    // the id of the entry that this hook settled last
	message            string    // to show at the terminal of the delivered entry, "" for nothing
	charged            *inbox.Tx // the transaction that charged this session
	// uncountedNow is why spending was not counted between two requests, nil if the state has the same reason.
	uncountedNow *string
	cut          bool // the transcript has become shorter
}

// end closes a transaction, notes its warnings, and has a person told what it brought.
func (h *hook) end(tx *inbox.Tx) error {
	if due := tx.NextDue(); !due.IsZero() {
		h.pollAgainIn(time.Until(due))
	}
	for _, w := range tx.Warnings() {
		h.Note("%s", w)
	}
	err := tx.Close()
	// A person is told once the transaction is committed and the decision is printed. What a killed hook did not tell is
	// told at the next session's start, or by the next hook that finds dead letters newer than .notified.json.
	begins := h.input != nil && h.input.Event == claude.EventSessionStart
	if h.Notify.Command != "" && (tx.NeedsPerson() || begins || h.lettersUntold()) {
		h.startNotifier()
	}
	return err
}

func (h *hook) failed(err error) int {
	unchanged := " and nothing was changed"
	if errors.Is(err, errNotPrinted) {
		unchanged = ""
	}
	h.Complain(fmt.Errorf("%w: the stop is approved%s", err, unchanged))
	return h.signal()
}

// signal ends the turn: stdout stays empty, and the launcher gets its signal.
func (h *hook) signal() int {
	if h.SignalFile == "" || h.input != nil && !h.endsTurn() || h.isInner() {
		return cli.ExitOK
	}
	h.awaitUsage()
	if err := disk.Touch(h.SignalFile); err != nil {
		h.Complain(fmt.Errorf("touch the signal file: %w", err))
	}
	return cli.ExitOK
}

func (h *hook) endsTurn() bool {
	return h.input.Event == claude.EventStop || h.input.Event == "" || h.input.Event == claude.EventStopFailure
}

// ended ends the hook without a decision. After a signal the exit status is the one that a shell would report.
func (h *hook) ended(cause error) int {
	h.Note("%v: nothing was taken", cause)
	if by, is := errors.AsType[cli.EndedBy](cause); is {
		return by.Status()
	}
	return cli.ExitOK
}

func (h *hook) age() time.Duration { return time.Duration(machine.SinceBoot() - h.Began) }

type voice struct {
	cli.Streams
	complained string           // the last error that was printed
	aside      []inbox.SetAside // not printed yet
}

// complainOnce prints an error unless it was the last one printed, and reports whether it did.
func (v *voice) complainOnce(err error) bool {
	if err.Error() == v.complained {
		return false
	}
	v.complained = err.Error()
	v.Complain(err)
	return true
}

// notifier starts the process that tells a person. It remembers only what this hook has done so far.
type notifier struct {
	asked string // the effects of runs that the last process was started for
}

// lettersUntold compares two file times and reads nothing, because it is called at each turn.
func (h *hook) lettersUntold() bool {
	letters, err := disk.StatName(h.box.DeadLetterPath())
	if err != nil {
		return false
	}
	told, err := disk.StatName(filepath.Join(h.box.Dir(), ".notified.json"))
	return err == nil && told.Mtime < letters.Mtime
}

func (h *hook) runsAsk(effects []string) {
	if asked := strings.Join(effects, " "); h.Notify.Command != "" && asked != h.notifier.asked {
		if h.notifier.asked = asked; asked != "" {
			h.startNotifier()
		}
	}
}

// startNotifier starts heartbeat notify in a session of its own, without any of the client's files open, and does not
// wait for it.
func (h *hook) startNotifier() {
	program, err := findFull()
	if err == nil {
		args := []string{"notify", "--linger", "--inbox", h.box.Path(), "--notify", h.Notify.Command}
		if h.Notify.Drained {
			args = append(args, "--notify-drained")
		}
		c := exec.Command(program, args...)
		c.Dir, c.SysProcAttr = "/", &syscall.SysProcAttr{Setsid: true}
		if err = c.Start(); err == nil {
			go func() { _ = c.Wait() }() // a hook that waits for weeks leaves no zombies
		}
	}
	if err != nil {
		h.complainOnce(fmt.Errorf("start %s notify, which tells a person: %w", FullCommand, err))
	}
}
