package hook

import (
	"time"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

// stopFailure acts on a turn that ended in an error, where no background wiring
// hands the entry over again: the launcher gets its signal, and decides.
func (h *hook) stopFailure() int {
	h.record(func(tx *inbox.Tx) error { return tx.Fail(h.input.SessionID, h.input.Error, h.input.LastMessage) })
	return h.signal()
}

// failTurn settles the entry whose turn ended in an error, and says how long
// nothing is to be delivered.
func (h *hook) failTurn(tx *inbox.Tx) (outcome, error) {
	failure := &inbox.Failure{Error: h.input.Error, Message: h.input.LastMessage, At: time.Now().UTC()}
	of := verdict(0)
	if d := tx.InFlight(); d != nil {
		if of = h.judge(tx, d); of == unsure {
			return unclear, nil
		}
	}
	return 0, h.settleFailed(tx, of, failure)
}

// settleFailed gives the entry back whose turn it was, if one was, or sets it
// aside once its attempts are used up.
func (h *hook) settleFailed(tx *inbox.Tx, of verdict, failure *inbox.Failure) error {
	d := tx.InFlight()
	if of != answered {
		err := tx.FailSession(h.input.SessionID, failure.Error, failure.Message)
		if err == nil && (of == interrupted || of == orphaned) {
			err = h.settleEntry(tx, of)
		}
		if err != nil {
			return err
		}
		return recovery.HoldDelivery(tx, failure, false)
	}
	if err := tx.Fail(d.SessionID, failure.Error, failure.Message); err != nil {
		return err
	}
	h.settled = d
	report, err := recovery.Settle(tx, h.Orphan.Options())
	if err == nil && report.Action == recovery.DeadLettered {
		h.Note("%s", report)
	}
	return err
}
