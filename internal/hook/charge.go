package hook

import (
	"errors"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/charging"
	"heartbeat/internal/claude"
)

// turnAccount tells of which turn's end the account was told.
type turnAccount struct {
	// charged is the transaction that has charged this session, told says that it was told
	// that a turn has ended, and kept that such a transaction was committed.
	charged    *inbox.Tx
	told, kept bool
}

// chargeEnd charges what the session has spent by the end of a turn, before anything is
// settled or delivered in it. What cannot be counted keeps nobody from being served.
func (h *hook) chargeEnd(tx *inbox.Tx) {
	if h.input == nil || h.account.charged == tx {
		return
	}
	h.account.charged, h.account.told = tx, h.endsTurn() && !h.account.kept
	h.placeTurn(tx, h.account.told)
	d := tx.InFlight()
	limited := h.Limits.Any() || d != nil && d.Limits().Any()
	err := charging.Turn(tx, h.box, h.input.SessionID, h.input.TranscriptPath, limited)
	h.uncounted(err)
	h.noteUncounted(tx, d, err)
}

// placeTurn says where in the transcript the session is; told, that the account hears of
// the end of this turn.
func (h *hook) placeTurn(tx *inbox.Tx, told bool) {
	turn := inbox.TurnUnknown
	switch {
	case told:
		turn = inbox.TurnEnded
	case h.endsTurn():
		turn = inbox.TurnOver
	}
	tx.Position(h.input.SessionID, claude.TranscriptSize(h.input.TranscriptPath), turn)
}

// chargeStart charges the sessions that have ended, as another one starts.
func (h *hook) chargeStart(tx *inbox.Tx) {
	h.uncounted(charging.Resumed(tx, h.box, h.input.SessionID, h.clientPID()))
	h.placeTurn(tx, false)
	h.uncounted(charging.Note(tx, h.box, ""))
}

func (h *hook) uncounted(err error) {
	if err != nil {
		h.Note("what the session spent is not all counted: %v", err)
	}
}

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
