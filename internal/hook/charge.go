package hook

import (
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

// chargeOrphan charges another session, whose entry is settled.
func (h *hook) chargeOrphan(tx *inbox.Tx) {
	if d := tx.InFlight(); h.input == nil || d.SessionID != h.input.SessionID {
		h.uncounted(charging.Orphan(tx, h.box))
	}
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
