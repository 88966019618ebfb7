package hook

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/money/budget"
	"heartbeat/internal/money/charging"
	recovery "heartbeat/recover"
)

// chargeEnd charges what the session has spent by the end of a turn, before anything is
// settled or delivered in it. What cannot be counted keeps nobody from being served.
func (h *hook) chargeEnd(tx *inbox.Tx) {
	if h.input == nil || h.charged == tx {
		return
	}
	h.charged = tx
	h.placeTurn(tx)
	d := tx.InFlight()
	err := charging.Turn(tx, h.input.SessionID)
	h.uncounted(err)
	h.noteUncounted(tx, d, err)
}

// placeTurn says where in the transcript the session is.
func (h *hook) placeTurn(tx *inbox.Tx) {
	tx.Position(h.input.SessionID, h.input.TranscriptPath, claude.TranscriptSize(h.input.TranscriptPath), h.endsTurn())
}

// chargeStart charges the sessions that have ended, as another one starts.
func (h *hook) chargeStart(tx *inbox.Tx) {
	h.placeTurn(tx)
	h.uncounted(charging.Note(tx, ""))
}

func (h *hook) uncounted(err error) {
	if err != nil {
		h.Note("what the session spent is not all counted: %v", err)
	}
}

// noteUncounted records at the end of a turn, with what that commits, why what is held against limits is
// not counted.
func (h *hook) noteUncounted(tx *inbox.Tx, d *inbox.Delivery, err error) {
	l := h.Limits
	limited := l.Entry.Spending() || l.Day.Spending() || d != nil && d.Limits().Spending()
	cause := ""
	if limited && err != nil {
		cause = err.Error()
	}
	if err := tx.NoteUncounted(h.input.SessionID, cause); err != nil {
		h.Complain(err)
	}
}

// count counts what the session has spent, as a view has it; nil if nobody counts it. tool is the use of a tool
// whose answer is asked for.
func (h *hook) count(view *inbox.View, tool string) (*charging.Counted, error) {
	path := h.input.TranscriptPath
	h.cut = h.cut || view.Position(h.input.SessionID, path, claude.TranscriptSize(path))
	s := view.Turns(h.input.SessionID)
	if s == nil {
		return nil, nil
	}
	return charging.Look(s, tool, h.input.AgentID)
}

// awaitSpending is for the end of a turn. The client writes its transcript late, while a chain of
// short turns has gone on several times by then. So close to a limit of the day the hook waits
// for the turn's answer in the transcript. It has no lock, and changes nothing.
func (h *hook) awaitSpending() {
	if h.input == nil || !h.Limits.Day.Any() || h.input.LastMessage == "" {
		return
	}
	h.glance(func(view *inbox.View) {
		path, from := h.input.TranscriptPath, int64(0)
		if d := view.InFlight(); d != nil && d.SessionID == h.input.SessionID {
			from = recovery.EvidenceOf(d).TranscriptSize
		}
		for began := time.Now(); time.Since(began) < lineWait; time.Sleep(answerPoll) {
			if claude.TranscriptSize(path) == 0 { // the first turns of a session may end before it is there
				if h.input.StopHookActive {
					return
				}
				continue
			}
			c, err := h.count(view, "")
			if err != nil || c == nil || !h.nearsDay(view, c) || h.client().Said(path, from, c.Read, h.input.LastMessage) {
				return // who charges says why
			}
		}
	})
}

// nearsDay reports whether a few requests more may reach the limit of the day.
func (h *hook) nearsDay(view *inbox.View, c *charging.Counted) bool {
	if c.Requests == 0 {
		return true
	}
	today := view.Spending(h.input.SessionID, c.Open(h.input.SessionID)).Today
	return recovery.JudgeDay(budget.Plan{Day: h.Limits.Day}, today.Plus(someMore(c, nearLimit))) != nil
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
