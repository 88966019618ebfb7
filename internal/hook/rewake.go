package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	recovery "heartbeat/recover"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
)

const (
	// ExitWake hands stderr to the model as the session's next turn. The command exits with it for nothing else.
	ExitWake = 2
	// markedWake is passed to exit for ExitWake: the system keeps the lower eight bits, while a plain 2 becomes 1 (see
	// exit.s).
	markedWake = 1<<8 | ExitWake

	// wakePoll is how often a hook in the background checks for changed files where file events do not arrive.
	wakePoll = 5 * time.Second
	// takeUpWait is how long after the end of its turn a session may take to pick up the text that woke it. It does so at
	// once, or never got the text.
	takeUpWait = 30 * time.Second
	startWait  = 3 * time.Second // gives a new session time for the prompt that it was started with
	maxRetry   = time.Minute     // bounds the wait before a hook tries again after an error
	maxNotes   = 64 << 10        // bounds the bytes that are kept of notes: a hook in the background may live for weeks
)

// firstRetry is the first wait after an error; each further wait is twice as long. Only tests set it.
var firstRetry = time.Second

var errNoClient = errors.New("--rewake needs to know whose session it is: CLAUDE_PID is not set, and the process that started this one is gone")

// wakeLater lets the turn end, and waits in the background until an entry wakes the session. enter records the event.
//
// With [ExitWake] all of stderr becomes part of the turn, so notes are kept back until it is certain that the session
// is not woken.
func (h *hook) wakeLater(enter func(*inbox.Tx) (outcome, error)) (status int) {
	if err := h.wakeable(); err != nil {
		h.Complain(err)
		h.signal()
		return cli.ExitError
	}
	stderr, notes := h.Err, &words.Head{Most: maxNotes}
	h.Err = notes
	_, _ = io.WriteString(notes, h.Notes) // it is memory
	defer func() {
		h.Err = stderr
		if status != markedWake {
			_, _ = io.WriteString(stderr, notes.String()) // if it fails, nobody reads
		}
	}()
	ctx, stop := h.waitContext()
	defer stop()
	w := h.box.Watch(wakePoll)       // before the first poll, so that no entry comes unnoticed between the two
	defer func() { _ = w.Close() }() // the process ends
	var o outcome
	var err error
	if !h.waits {
		o, err = h.enter(ctx, enter)
	}
	switch {
	case err != nil:
		return h.ended(err)
	case o == approved:
		return h.signal()
	case o == held:
		return cli.ExitOK // the session is at work already
	}
	if err := h.awaitEntry(ctx, w); err != nil {
		return h.ended(err)
	}
	if h.wakeText == "" {
		return cli.ExitOK // another hook waits
	}
	if _, err := fmt.Fprintln(stderr, h.wakeText); err != nil {
		return cli.ExitError
	}
	return markedWake
}

// enter commits the event, and that this hook waits from now on. It retries until that succeeds, because the client
// reports an event only once.
func (h *hook) enter(ctx context.Context, record func(*inbox.Tx) (outcome, error)) (o outcome, err error) {
	if h.Waiter, err = machine.RandomName(); err != nil {
		return 0, err
	}
	for wait := firstRetry; ; wait = min(2*wait, maxRetry) {
		o, err = h.poll(context.Background(), func(tx *inbox.Tx, _ inbox.Mark) (outcome, string, error) {
			o, err := record(tx)
			if o == leave || o == owned || o == unmet {
				o = 0 // what is in flight belongs to another turn: wait for that turn's end
			}
			if err == nil && o == 0 {
				o, err = h.startWaiting(tx)
			}
			return o, "", err
		}, nil)
		if err == nil {
			h.waits = o == 0
			return o, nil
		}
		h.complainOnce(err)
		select {
		case <-ctx.Done():
			return o, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

func (h *hook) wakeable() error {
	switch {
	case !h.client().CanBeWoken():
		in, err := h.input, fmt.Errorf("--rewake needs an interactive session: %s", h.client().CannotBeWoken())
		h.record(func(tx *inbox.Tx) error { return tx.In(in.SessionID).FailAlone(recovery.CannotWake, err.Error()) })
		return err
	case h.clientPID() == 0 && h.Parent <= 1:
		return errNoClient
	}
	return nil
}
