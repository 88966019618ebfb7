package hook

import (
	"encoding/json"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/enforce"
	"heartbeat/internal/why"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
	recovery "heartbeat/recover"
)

// endTurn settles what was in flight, as the end of this turn tells. No outcome
// means that the session may have another entry.
func (h *hook) endTurn(tx *inbox.Tx) (outcome, error) {
	session := ""
	if h.input != nil {
		session = h.input.SessionID
		if err := tx.StopAsking(session); err != nil {
			return 0, err
		}
		tx.ForgetStopped(session)
		if h.Limits.Session.Any() || h.Limits.Day.Any() {
			h.chargeEnd(tx)
		}
	}
	if d := tx.InFlight(); d != nil {
		verdict := h.judge(tx, d)
		switch verdict {
		case sameStop, pending:
			return leave, nil
		case unsure:
			return unclear, nil
		case answered:
			if rests, err := h.holdForTasks(tx, d); rests || err != nil {
				return resting, err
			}
		}
		if busy, err := h.isWithAnother(tx, d, verdict); err != nil || busy {
			return held, err
		}
		h.chargeEnd(tx)
		if err := h.settleEntry(tx, verdict); err != nil {
			return 0, err
		}
	}
	if over, err := h.sessionIsOver(tx, session); over || err != nil {
		return approved, err
	}
	if h.MaxEntries > 0 && tx.Acknowledged(session) >= h.MaxEntries {
		return approved, nil
	}
	if over, err := h.blockedEnough(tx); over || err != nil {
		return approved, err
	}
	return 0, nil
}

// blockedEnough reports whether one more block would be beyond --max-blocks. The client
// counts anew at each turn that no block began.
func (h *hook) blockedEnough(tx *inbox.Tx) (bool, error) {
	if h.MaxBlocks == 0 || h.input == nil || !h.input.StopHookActive {
		return false, nil
	}
	n, err := tx.Blocks(h.input.SessionID)
	return n >= h.MaxBlocks, err
}

// countBlock counts the block that delivers an entry, where that is limited.
func (h *hook) countBlock(tx *inbox.Tx) error {
	if h.MaxBlocks == 0 || h.input == nil {
		return nil
	}
	return tx.CountBlock(h.input.SessionID, !h.input.StopHookActive)
}

// sessionIsOver reports whether the session has reached its limit. A launcher ends it then.
func (h *hook) sessionIsOver(tx *inbox.Tx, session string) (bool, error) {
	v := enforce.JudgeSession(h.Limits, tx.SpentBy(session))
	if v == nil {
		return false, tx.NoteOver(session, "")
	}
	h.Note("%s: it is given no more entries, a fresh one is", v.Figures)
	return true, h.noteOver(tx, v.Figures)
}

// noteOver records it where no launcher sees to a fresh session: a person has to.
func (h *hook) noteOver(tx *inbox.Tx, figures string) error {
	if h.SignalFile != "" || h.input == nil {
		return nil
	}
	return tx.NoteOver(h.input.SessionID, figures)
}

// acknowledge settles the entry in flight as answered, unless it is an effect's
// that still has no result: then it is delivered again, while its attempts last.
func (h *hook) acknowledge(tx *inbox.Tx) error {
	d := tx.InFlight()
	e := h.evidenceOf(d)
	reply := h.replyTo(d, e)
	if d.Verdict != nil {
		return h.carryOut(tx, reply, h.tasksOf(e))
	}
	missing, err := h.takeResult(d, reply)
	switch {
	case err != nil:
		return err
	case missing == "":
		return tx.AcknowledgeWith(reply, h.tasksOf(e))
	case d.Attempt >= h.Orphan.MaxAttempts:
		h.Note("the entry %s is set aside: %s", words.Name(d.ID(), d.EntryID), missing)
		return tx.DeadLetter(inbox.ReasonUnresolved)
	}
	tx.Worked(recovery.Worked(d))
	return tx.GiveBackFor(missing, true)
}

// carryOut settles the entry in flight, whose turn is over, as its agent said.
func (h *hook) carryOut(tx *inbox.Tx, reply string, tasks json.RawMessage) error {
	o := h.Orphan.Options()
	o.Overcome, o.Tasks = true, tasks
	o.Finished = func(*inbox.Tx) (string, bool) { return reply, true }
	report, err := recovery.Settle(tx, o)
	if err == nil && report.Action != recovery.Answered {
		h.Note("%s", report)
	}
	return err
}

func (h *hook) settleEntry(tx *inbox.Tx, v verdict) error {
	h.settled = tx.InFlight()
	h.lastSettled = h.settled.ID()
	switch v {
	case answered:
		h.answered = h.settled
		return h.acknowledge(tx)
	}
	o := h.Orphan.Options()
	o.Overcome, o.Charge = true, h.chargeOrphan
	if o.Unreached = h.neverReached; h.input == nil {
		o.Unreached, o.Finished = nil, nil // nobody wrote a transcript
	}
	if v == interrupted {
		o.Reason = inbox.ReasonInterrupted
	}
	report, err := recovery.Settle(tx, o)
	if err == nil {
		h.Note("%s", report)
	}
	return err
}

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
	h.chargeEnd(tx)
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

// isWithAnother reports whether the entry in flight is a run's, and another session
// that lives is at it: its own next Stop decides. Handing it to this one would have it
// done twice, and each would take it from the other until its attempts are used up.
func (h *hook) isWithAnother(tx *inbox.Tx, d *inbox.Delivery, v verdict) (bool, error) {
	if v != orphaned || h.input == nil || d.SessionID == h.input.SessionID {
		return false, nil
	}
	if _, ofRun := effect.MarkOf(d); !ofRun {
		return false, nil
	}
	s, err := tx.Session(d.SessionID)
	if err != nil || s.EndedAt != nil || s.PID == h.clientPID() || why.LifeOf(s) != why.Alive {
		return false, err
	}
	h.Note("entry %s is with session %s (process %d), which lives: it is left to that one", d.ID(), words.Short(s.ID), s.PID)
	h.lookAgainIn(maxRecheck)
	return true, nil
}

// neverReached asks the transcript of the session that the entry in flight was
// delivered to, on behalf of a Stop.
func (h *hook) neverReached(tx *inbox.Tx) bool {
	d := tx.InFlight()
	e := h.evidenceOf(d)
	if e.Prompted && e.Start == h.Start {
		return false // a turn of its client ends, and this may have been its text
	}
	if !e.Woken && recovery.SessionRestarted(tx, d) != recovery.Restarted && h.input.SessionID == d.SessionID && !isClient(h.clientPID(), e) {
		return false // resumed in another process, nobody noted when
	}
	return e.Unreached(tx, d)
}
