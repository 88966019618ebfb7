package hook

import (
	"errors"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// asker returns this hook as one who asks what becomes of entries.
func (h *hook) asker() recovery.Asker {
	s := h.Orphan
	s.Limits = h.Limits
	return recovery.Asker{
		Settings: s, Box: h.box, Client: inbox.Process{PID: h.clientPID()}, Start: h.Start,
		Elsewhere: h.settledElsewhere, Note: func(format string, args ...any) { h.Note(format, args...) },
	}
}

// settleEntry settles the entry in flight, as this event shows. left says that the entry belongs to another session,
// which lives.
func (h *hook) settleEntry(tx *inbox.Tx, v verdict) (left bool, err error) {
	d := tx.InFlight()
	e := h.evidenceOf(d)
	sight := recovery.Sight{Overcome: true, NoTranscript: h.input == nil, Unreached: h.neverReached, Charged: h.input != nil && d.SessionID == h.input.SessionID}
	switch v {
	case answered:
		sight.Ended, sight.Reply, sight.Tasks = true, h.replyTo(d, e), h.tasksOf(e)
		if sight.Check, sight.Spent = h.checking.of(d), h.checking.spent; sight.Check != nil && h.checking.over != nil {
			sight.Check, sight.Over = nil, h.checking.over
		}
		if d.Verdict == nil {
			if sight.Missing, err = h.takeResult(d, sight.Reply); err != nil {
				return false, err
			}
		}
		sight.Charged = true
	case interrupted:
		sight.Reason = inbox.ReasonInterrupted
	}
	report, err := h.settle(tx, sight)
	switch {
	case err != nil:
	case sight.Missing != "" && report.Action == recovery.DeadLettered:
		h.Note("the entry %s is set aside: %s", words.Name(d.ID(), d.EntryID), sight.Missing)
	case report.Action == recovery.Owned:
		if h.watchOwner(report.Owner) { // once for each owner, and not for each of its entries
			h.Note("%s", report)
		}
	case !sight.Ended || d.Verdict != nil && report.Action != recovery.Answered:
		h.complainOnce(errors.New(report.String()))
	}
	return report.Action == recovery.Owned, err
}

// settle has the entry in flight settled, and remembers it for what follows the commit.
func (h *hook) settle(tx *inbox.Tx, sight recovery.Sight) (recovery.Report, error) {
	d := tx.InFlight()
	report, err := recovery.Settle(tx, h.asker(), sight)
	if err != nil || report.Action == recovery.Owned {
		return report, err
	}
	if h.settled, h.lastSettled = d, d.ID(); sight.Ended {
		h.answered = d
		if h.gate.unsure && report.Action == recovery.Answered {
			h.doubtful = d
		}
	}
	return report, nil
}

// stopFailure acts on a turn that ended in an error, for wirings that do not wait in the background. It signals the
// launcher, which decides.
func (h *hook) stopFailure() int {
	h.record(func(tx *inbox.Tx) error {
		if h.isElsewhere(tx) {
			return tx.In(h.input.SessionID).FailAlone(h.input.Error, h.input.LastMessage)
		}
		return tx.In(h.input.SessionID).Fail(h.input.Error, h.input.LastMessage)
	})
	return h.signal()
}

// isElsewhere reports whether the entry in flight has a live owner other than this hook's client. Both may have the
// same session.
func (h *hook) isElsewhere(tx *inbox.Tx) bool {
	d := tx.InFlight()
	if d == nil {
		return false
	}
	o := recovery.OwnerOf(tx, d)
	return o.Life == machine.Alive && o.PID != h.clientPID()
}

// isInner reports whether this hook's session was started by a tool of the session that has the entry in flight. The
// entry's turn waits for this session, which must neither wait for that turn nor have the launcher end it. A session with
// a launcher of its own is none: nobody else ends it.
func (h *hook) isInner() (is bool) {
	if h.box == nil || h.Launched {
		return false
	}
	h.glance(func(view *inbox.View) {
		if d, client := view.InFlight(), h.clientPID(); d != nil {
			o := recovery.OwnerOf(view, d)
			is = o.Life == machine.Alive && o.PID != client && machine.Nearest(client, func(p int) bool { return p == o.PID }) != 0
		}
	})
	return is
}

// failTurn notes that a turn ended in an error, and how long delivery is held back. It gives the entry back if that turn
// was its own, or sets it aside once its attempts are used up.
func (h *hook) failTurn(tx *inbox.Tx) (outcome, error) {
	failure := &inbox.Failure{Error: h.input.Error, Message: h.input.LastMessage, At: time.Now().UTC()}
	of := verdict(0)
	if d := tx.InFlight(); d != nil {
		if of = h.judge(tx, d); of == unsure {
			return unclear, nil
		}
	}
	h.chargeEnd(tx)
	if of == answered {
		if err := tx.In(tx.InFlight().SessionID).Fail(failure.Error, failure.Message); err != nil {
			return 0, err
		}
		report, err := h.settle(tx, recovery.Sight{Charged: true})
		if err == nil && report.Action == recovery.DeadLettered {
			h.Note("%s", report)
		}
		return 0, err
	}
	err := tx.In(h.input.SessionID).FailAlone(failure.Error, failure.Message)
	if err == nil && (of == interrupted || of == orphaned) {
		_, err = h.settleEntry(tx, of)
	}
	if err == nil {
		err = recovery.HoldDelivery(tx, failure, false)
	}
	return 0, err
}

// neverReached reports, for a Stop, whether the transcript of the session that got the entry in flight proves that the
// text never reached the model.
func (h *hook) neverReached(tx *inbox.Tx) bool {
	d := tx.InFlight()
	e := h.evidenceOf(d)
	if e.Prompted && e.Start == h.Start {
		return false // a turn of its client ends, and may have been its text
	}
	if !e.Woken && recovery.SessionRestarted(tx, d) != recovery.Restarted && h.input.SessionID == d.SessionID && !isClient(h.clientPID(), e) {
		return false // it was resumed in another process, and nobody noted when
	}
	return e.Unreached(tx, d)
}
