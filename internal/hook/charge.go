package hook

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/meter"
	recovery "heartbeat/recover"
)

// chargeEnd charges what the session has spent by the end of a turn, before tx settles or delivers anything. A failed
// count stops nothing.
func (h *hook) chargeEnd(tx *inbox.Tx) {
	if h.input == nil || h.charged == tx {
		return
	}
	h.charged = tx
	h.notePosition(tx)
	d := tx.InFlight()
	err := meter.ChargeTurn(tx, h.input.SessionID)
	h.warnUncounted(err)
	l := h.Limits
	if err != nil && !l.Entry.Spending() && !l.Day.Spending() && (d == nil || !recovery.LimitsOf(d, l).Entry.Spending()) {
		err = nil // no limit misses what was not counted
	}
	tx.In(h.input.SessionID).NoteUncounted(causeOf(err))
}

// notePosition notes the size of the session's transcript.
func (h *hook) notePosition(tx *inbox.Tx) {
	account.Of(tx).Position(h.input.SessionID, h.input.TranscriptPath, claude.TranscriptSize(h.input.TranscriptPath), h.endsTurn())
}

func (h *hook) warnUncounted(err error) {
	if err != nil {
		h.Note("what the session spent is not all counted: %v", err)
	}
}

// usageWait is several times what a client takes to write an answer to its transcript. Only tests set it.
var usageWait = time.Second

func causeOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// count returns what the session has spent, as the view has it, or nil if nobody counts it. The answer that asked for
// tool is wanted.
func (h *hook) count(view *inbox.View, tool string) (*meter.Counted, error) {
	path := h.input.TranscriptPath
	h.cut = h.cut || account.Of(view).Position(h.input.SessionID, path, claude.TranscriptSize(path), false)
	s := account.Of(view).Turns(h.input.SessionID)
	if s == nil {
		return nil, nil
	}
	return meter.CountTurns(s, account.Of(view).DayBegan(), tool, h.input.AgentID)
}

// awaitSpending waits at the end of a turn, close to a limit of the day, until the transcript has the turn's answer. The
// client writes it late, and a chain could add several short turns meanwhile. It takes no lock and changes nothing.
func (h *hook) awaitSpending() {
	if h.input == nil || !h.Limits.Day.Any() || h.input.LastMessage == "" {
		return
	}
	h.withView(func(view *inbox.View) {
		path, from := h.input.TranscriptPath, int64(0)
		if d := view.InFlight(); d != nil && d.SessionID == h.input.SessionID {
			from = recovery.EvidenceOf(d).TranscriptSize
		}
		for began := time.Now(); time.Since(began) < lineWait; time.Sleep(answerPoll) {
			if claude.TranscriptSize(path) == 0 { // a session's first turns may end before it exists
				if h.input.StopHookActive {
					return
				}
				continue
			}
			c, err := h.count(view, "")
			if err != nil || c == nil {
				return // whoever charges reports why
			}
			far := c.Requests > 0 && recovery.JudgeDay(h.Limits, h.spending(view, c).Today.Plus(someMore(c, nearLimit))) == nil
			if far || h.client().HasReply(path, from, c.Read, h.input.LastMessage) {
				return
			}
		}
	})
}

// awaitUsage waits until the transcript has the answer that was just acknowledged, before the launcher is told to end the
// session. A client that ends at once may lose its last lines, and with them what the answer has cost.
func (h *hook) awaitUsage() {
	if h.answered == nil || h.input == nil || h.input.LastMessage == "" {
		return
	}
	path, from := h.input.TranscriptPath, recovery.EvidenceOf(h.answered).TranscriptSize
	for began := time.Now(); time.Since(began) < usageWait; time.Sleep(answerPoll) {
		if to := claude.TranscriptSize(path); to == 0 || h.client().HasReply(path, from, to, h.input.LastMessage) {
			return
		}
	}
}

// spending returns what was spent, including what c counted of the session. If c is unsure, a table that cannot be read
// may have the missing prices, so none counts as missing.
func (h *hook) spending(view *inbox.View, c *meter.Counted) account.Spending {
	money := account.Of(view)
	money.Count(h.input.SessionID, c.Open(h.input.SessionID))
	s := money.Spending()
	if c.Unsure {
		s.Here.Unpriced, s.Today.Unpriced = 0, 0
	}
	return s
}

// withView calls f with the inbox as it is, without the lock. If the inbox cannot be read, it does not call f: the
// transaction that follows reports why.
func (h *hook) withView(f func(*inbox.View)) {
	view, err := h.box.View()
	if err != nil {
		return
	}
	defer func() { _ = view.Close() }() // it was only read
	f(view)
}
