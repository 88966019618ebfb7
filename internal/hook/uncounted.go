package hook

import (
	"errors"
	"time"

	"heartbeat/inbox"
)

// counting is what this hook found about the count of what its session spends.
type counting struct {
	err     error // of awaitSpending
	changed bool  // what the state has of it is not so any more
	cause   string
	cut     bool // the transcript is shorter than it was
}

// found notes what came of a count, where that is not what the state has.
func (c *counting) found(view *inbox.View, session string, err error) {
	if c.cause = ""; err != nil {
		c.cause = err.Error()
	}
	c.changed = !inbox.SameFinding(c.cause, view.Uncounted(session))
}

// keepCounting records it between two requests: a turn may go on for hours without a Stop.
// It takes the lock once for each cause, and for a transcript that was cut, which nobody
// could tell any more once it has grown again.
func (h *hook) keepCounting() {
	if h.counting.changed {
		h.record(func(tx *inbox.Tx) error { return tx.NoteUncounted(h.input.SessionID, h.counting.cause) })
	}
	if h.counting.cut {
		h.record(h.chargeTurn)
	}
}

// noteUncounted records it at the end of a turn, with what that commits.
func (h *hook) noteUncounted(tx *inbox.Tx, d *inbox.Delivery, err error) {
	l := h.Limits
	limited := l.Entry.Spending() || l.Session.Spending() || l.Day.Spending() || h.Runs.MaxCost > 0 || d != nil && d.Limits().Spending()
	cause := ""
	if err = errors.Join(h.counting.err, err); limited && err != nil {
		cause = err.Error()
	}
	if err := tx.NoteUncounted(h.input.SessionID, cause); err != nil {
		h.Complain(err)
	}
}

// blockedWait is how long a hook waits for another reading where an earlier one was waited
// for in vain: whoever has the lock may never give it back.
const blockedWait = 20 * time.Millisecond

// meterWait is 0 for the usual time.
func meterWait(view *inbox.View, session string) time.Duration {
	if view.Uncounted(session) != "" {
		return blockedWait
	}
	return 0
}

func (h *hook) meterWait() (wait time.Duration) {
	h.glance(func(view *inbox.View) { wait = meterWait(view, h.input.SessionID) })
	return wait
}
