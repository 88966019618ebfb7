package hook

import (
	"errors"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/money/budget"
	"heartbeat/internal/money/charging"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
	recovery "heartbeat/recover"
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
	err := charging.Turn(tx, h.box, h.input.SessionID, h.input.TranscriptPath)
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
	h.uncounted(charging.Resumed(tx, h.box, h.input.SessionID))
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
	limited := l.Entry.Spending() || l.Day.Spending() || d != nil && d.Limits().Spending()
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

// awaitSpending is for the end of a turn. The client writes its transcript late, while a chain of
// short turns has gone on several times by then. So close to a limit of the day the hook waits
// for the turn's answer in the transcript. It has no lock, and
// changes nothing but the count.
func (h *hook) awaitSpending() {
	if h.input == nil || !h.Limits.Day.Any() {
		return
	}
	h.counting.err = h.countAnswer(budget.Plan{Day: h.Limits.Day})
	h.uncounted(h.counting.err)
}

// countAnswer counts what the session has spent, close to a limit with the answer that
// ended the turn.
func (h *hook) countAnswer(l budget.Plan) error {
	path, reply, from := h.input.TranscriptPath, h.input.LastMessage, h.deliveredAt()
	reading := meter.Reading{Session: h.input.SessionID, Transcript: path, Wait: h.meterWait()}
	for began := time.Now(); ; time.Sleep(answerPoll) {
		s, err := meter.Advance(h.box.Dir(), reading)
		absent := claude.TranscriptSize(path) == 0
		switch {
		case err != nil || reply == "" || time.Since(began) >= lineWait || absent && h.input.StopHookActive:
			return err
		case absent: // the first turns of a session may end before it is there
		case s == nil || !h.isNear(l, s) || h.client().Said(path, from, s.Read, reply):
			return err
		}
	}
}

// deliveredAt is how long the transcript was when the entry in flight was handed over, 0 if
// there is none of this session.
func (h *hook) deliveredAt() (size int64) {
	h.glance(func(view *inbox.View) {
		if d := view.InFlight(); d != nil && d.SessionID == h.input.SessionID {
			size = recovery.EvidenceOf(d).TranscriptSize
		}
	})
	return size
}

// glance lets f look at the inbox as it is, without the lock. Where that cannot be read f
// is not called: the transaction behind it says why.
func (h *hook) glance(f func(*inbox.View)) {
	view, err := h.box.View()
	if err != nil {
		return
	}
	defer func() { _ = view.Close() }() // it was only read
	f(view)
}

// isNear reports whether a few requests more may reach a limit.
func (h *hook) isNear(l budget.Plan, s *meter.State) (near bool) {
	if s.Spent.Requests == 0 {
		return true
	}
	more := price.Amount{
		Nanos: nearLimit * (s.Spent.Nanos / s.Spent.Requests), Dollars: s.Spent.Dollars,
		Tokens: price.Tokens{Input: nearLimit * (s.Spent.Tokens.Sum() / s.Spent.Requests)},
	}
	h.glance(func(view *inbox.View) {
		spending, err := view.Spending(charging.Reading(s))
		near = err == nil && recovery.JudgeDay(l, spending.Today.Plus(more)) != nil
	})
	return near
}
