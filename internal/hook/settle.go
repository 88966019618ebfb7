package hook

import (
	"errors"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/check"
	"heartbeat/internal/claude"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// asker returns this hook as one who asks what becomes of entries.
func (h *hook) asker() recovery.Asker {
	a := recovery.Asker{
		Settings: h.Orphan, Box: h.box, Client: inbox.Process{PID: h.clientPID()}, Start: h.Start,
		Elsewhere: h.settledElsewhere, Note: func(format string, args ...any) { h.Note(format, args...) },
	}
	a.Limits = h.Limits
	if h.input != nil {
		a.Stop = &recovery.Stop{Input: h.input, Began: h.Began, Background: h.Rewake, TaskLimit: time.Duration(h.Background)}
	}
	return a
}

// flight returns the entry that tx has in flight, or nil.
func (h *hook) flight(tx *inbox.Tx) *recovery.Flight { return h.asker().Flight(tx) }

// judge returns what this Stop says about the entry in flight.
func (h *hook) judge(f *recovery.Flight) recovery.Says {
	says, waitFor := f.Says(h.watched.deadline.IsZero() || time.Now().Before(h.watched.deadline))
	switch says {
	case recovery.Unsure:
		if h.watched.deadline.IsZero() {
			h.watched.deadline = time.Now().Add(transcriptWait)
		}
		h.watched.path, h.watched.size = waitFor, claude.TranscriptSize(waitFor)
	case recovery.Unproven:
		h.Note("nothing is taken for an answer to the entry %s: this Stop says what the one said that delivered it, and no transcript shows that it is another", words.Name(f.Entry.ID(), f.Entry.EntryID))
	}
	return says
}

func (h *hook) client() *agent.Agent {
	if h.input == nil {
		return agent.Of("")
	}
	return agent.Of(h.input.TranscriptPath)
}

// clientPID returns the client's process id, or 0. It is looked up once: if the client does not name it, the processes
// above this one are searched.
func (h *hook) clientPID() int {
	if !h.clientSought {
		h.clientIs, h.clientSought = h.client().PID(h.Parent), true
	}
	return h.clientIs
}

const (
	// transcriptWait is how long the transcript may take to show an answer: the client writes it late.
	transcriptWait = 1500 * time.Millisecond
	transcriptPoll = 10 * time.Millisecond
)

// settleEntry settles the entry in flight, as this event shows. left says that the entry belongs to another session,
// which lives.
func (h *hook) settleEntry(tx *inbox.Tx, f *recovery.Flight, says recovery.Says) (left bool, err error) {
	f.Entry = tx.InFlight() // a check or a charge has changed it
	d := f.Entry
	sight := recovery.Sight{Overcome: true, Charged: h.input != nil && d.SessionID == h.input.SessionID}
	switch says {
	case recovery.TurnEnded:
		sight.Ended, sight.Charged = true, true
		if sight.Check, sight.Spent = h.checking.of(d), h.checking.spent; sight.Check != nil && h.checking.over != nil {
			sight.Check, sight.Over = nil, h.checking.over
		}
		if d.Verdict == nil && (d.Check == nil || sight.Check != nil && sight.Check.Verdict == check.Passed) {
			if sight.Missing, err = h.takeResult(f); err != nil {
				return false, err
			}
		}
	case recovery.WentOn:
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
	if h.settled, h.lastSettled = d, report.ID; sight.Ended {
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
		if f := h.flight(tx); f != nil && f.Elsewhere() != nil {
			return tx.In(h.input.SessionID).FailAlone(h.input.Error, h.input.LastMessage)
		}
		return tx.In(h.input.SessionID).Fail(h.input.Error, h.input.LastMessage)
	})
	return h.signal()
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
	says := recovery.Says(0)
	f := h.flight(tx)
	if f != nil {
		if says = h.judge(f); says == recovery.Unsure {
			return unclear, nil
		}
	}
	h.chargeEnd(tx)
	if says == recovery.TurnEnded {
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
	if err == nil && (says == recovery.WentOn || says == recovery.LeftBehind) {
		_, err = h.settleEntry(tx, f, says)
	}
	if err == nil {
		err = recovery.HoldDelivery(tx, failure, false)
	}
	return 0, err
}
