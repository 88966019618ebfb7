package hook

import (
	"errors"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/check"
	"heartbeat/internal/money/account"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// This file has those transitions of the table in docs/design.md that the end of a turn or a waiting hook decides.
// session.go has those of other events.

// outcome is what one poll of the inbox came to.
type outcome int

const (
	delivered outcome = iota + 1 // the decision is printed
	approved                     // nothing is to be delivered in this turn
	empty                        // nothing waits
	held                         // delivery is held back
	owned                        // the entry in flight belongs to another session, which lives
	torn                         // the last line waits for its newline
	leave                        // another hook acts on this Stop
	resting                      // the entry in flight waits for tasks in the background
	unclear                      // the transcript may show more soon
	more                         // much was settled, and is committed before the next poll
	unchecked                    // the check of the entry in flight has to run first
	unmet                        // the check failed: the turn of the entry in flight is continued with its output
)

// decide acts on the end of a turn: it settles what was in flight as the turn shows, and delivers what comes next.
func (h *hook) decide(tx *inbox.Tx, still inbox.Mark) (outcome, string, error) {
	switch o, err := h.endTurn(tx); {
	case err == nil && o == unmet:
		e, text, err := h.feedback(tx.InFlight())
		if err != nil {
			return 0, "", err
		}
		return h.continueTurn(tx, e, h.input.PromptID, text)
	case err != nil || o != 0:
		return o, "", err
	}
	return h.deliverNext(tx, still)
}

// decideWake takes the next entry if this hook is still the one that waits and the session is idle.
func (h *hook) decideWake(tx *inbox.Tx, still inbox.Mark) (outcome, string, error) {
	f := h.flight(tx)
	if f != nil && h.offer != nil && f.Evidence == h.offer.evidence {
		return delivered, h.offer.text, nil // it was committed after all
	}
	w, err := tx.Waiter()
	if err != nil {
		return 0, "", err
	}
	if w == nil || w.Name != h.Waiter {
		return leave, "", nil
	}
	if ready, err := h.sessionIsReady(tx.In(w.SessionID).Known()); err != nil || !ready {
		return held, "", err
	}
	if f != nil && f.Entry.Check != nil && f.Entry.Check.Untold && f.SameClient() {
		e, text := h.wakeFeedback(f.Entry)
		return h.continueTurn(tx, e, "", text)
	}
	if ready, err := h.nothingInFlight(tx, f); err != nil || !ready {
		return held, "", err
	}
	return h.deliverNext(tx, still)
}

// nothingInFlight reports whether an entry may be delivered. A text that the session has not picked up by the end of its
// turn never reached it. If it did, but no hook ran, as while hooks are disabled, nothing shows the answer.
func (h *hook) nothingInFlight(tx *inbox.Tx, f *recovery.Flight) (bool, error) {
	if f == nil {
		return true, nil
	}
	if !f.Woken || f.Bound || !f.SameClient() {
		h.pollAgainIn(maxRecheck)
		if !f.Life().Ended() && (f.SameClient() || h.input.SessionID == f.Entry.SessionID) {
			return false, nil // the session's own next event decides
		}
		left, err := h.settleEntry(tx, f, recovery.LeftBehind)
		return !left, err
	}
	if rest := takeUpWait - h.age(); rest > 0 {
		h.pollAgainIn(rest)
		return false, nil
	}
	if f.Woke("") {
		left, err := h.settleEntry(tx, f, recovery.WentOn)
		return !left, err
	}
	h.Note("the entry %s was not taken up, and is handed over again", words.Name(f.Entry.ID(), f.Entry.EntryID))
	report, err := h.settle(tx, recovery.Sight{NotHandedOver: true, Charged: true})
	return report.Action != recovery.Owned, err
}

// continueTurn keeps the entry in flight for another turn of this session, which gets the text.
func (h *hook) continueTurn(tx *inbox.Tx, e recovery.Evidence, promptID, text string) (outcome, string, error) {
	h.chargeEnd(tx)
	tx.Worked(recovery.Worked(tx.InFlight()))
	e.BoundSeq = tx.Seq()
	if err := tx.Continue(inbox.Recipient{SessionID: h.input.SessionID, PromptID: promptID, Evidence: e.Encode()}); err != nil {
		return 0, "", err
	}
	return h.decideHandover(tx, text)
}

// deliverNext puts the next entry in flight, with the checks that it has to pass.
func (h *hook) deliverNext(tx *inbox.Tx, still inbox.Mark) (outcome, string, error) {
	o, e, err := h.next(tx, still)
	if err != nil || o != 0 {
		return o, "", err
	}
	text, spill, err := h.textOf(e)
	if err != nil {
		return 0, "", err
	}
	h.chargeEnd(tx) // before the evidence of this moment is taken
	to := h.recipient(e, spill)
	if to.Checks, err = h.asker().ChecksOf(e); err == nil {
		_, err = tx.Deliver(e, to)
	}
	if err != nil {
		return 0, "", err
	}
	if !h.Rewake {
		h.message = h.announcement(e)
	}
	return h.decideHandover(tx, text)
}

func (h *hook) decideHandover(tx *inbox.Tx, text string) (outcome, string, error) {
	if h.Rewake {
		h.offer = &offer{recovery.EvidenceOf(tx.InFlight()), text}
		tx.StopWaiting()
	} else if h.MaxBlocks > 0 && h.input != nil {
		tx.In(h.input.SessionID).CountBlock(!h.input.StopHookActive)
	}
	return delivered, text, nil
}

// endTurn settles what was in flight, as the end of this turn shows. Outcome 0 means that the session may get another
// entry.
func (h *hook) endTurn(tx *inbox.Tx) (outcome, error) {
	session := ""
	if h.input != nil {
		session = h.input.SessionID
		of, prompt := tx.In(session), h.input.PromptID
		of.StopAsking()
		late, wentOut := of.Late(prompt)
		if err := of.LateAnswer(prompt, h.input.LastMessage, h.asker().EndsLate(late, wentOut)); err != nil {
			return 0, err
		}
		if doubt := of.Doubt(); doubt != nil {
			if objection, known := h.objection(doubt, tx.InFlight()); known {
				of.Contest(objection)
			}
		}
		if h.Limits.Day.Any() {
			h.chargeEnd(tx)
		}
	}
	blocked := h.blockedEnough(tx)
	if f, means := h.judge(tx); f != nil {
		switch means {
		case recovery.SameStop, recovery.Unproven, recovery.Pending:
			return leave, nil
		case recovery.Unsure:
			return unclear, nil
		case recovery.TurnEnded:
			if left := h.tasksLeft(f); len(left) > 0 {
				f.TaskWait = f.Wait(left, f.LastReply())
				return resting, tx.Bind(inbox.Recipient{SessionID: f.Entry.SessionID, PromptID: f.Entry.PromptID, Evidence: f.Encode()})
			}
			o, c, err := h.mustCheck(f, !h.gate.shut && !blocked, func() account.Spending { h.chargeEnd(tx); return account.Of(tx).Spending() })
			if c != nil {
				err = tx.NoteCheck(*c)
			}
			if o != 0 || err != nil {
				return o, err
			}
		}
		h.chargeEnd(tx)
		if left, err := h.settleEntry(tx, f, means); err != nil || left {
			return owned, err
		}
	}
	switch {
	case h.gate.shut,
		h.MaxEntries > 0 && tx.In(session).Acknowledged() >= h.MaxEntries,
		!h.Until.IsZero() && time.Until(h.Until.Time) <= 0,
		blocked:
		return approved, nil
	}
	return 0, nil
}

// failTurn notes that a turn ended in an error, and how long delivery is held back. If the turn was the entry's, it gives
// the entry back, or sets it aside once its attempts are used up.
func (h *hook) failTurn(tx *inbox.Tx) (outcome, error) {
	failure := &inbox.Failure{Error: h.input.Error, Message: h.input.LastMessage, At: time.Now().UTC()}
	f, means := h.judge(tx)
	if means == recovery.Unsure {
		return unclear, nil
	}
	h.chargeEnd(tx)
	if means == recovery.TurnEnded {
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
	if err == nil && (means == recovery.WentOn || means == recovery.LeftBehind) {
		_, err = h.settleEntry(tx, f, means)
	}
	if err == nil {
		err = recovery.HoldDelivery(tx, failure, false)
	}
	return 0, err
}

// stopFailure notes that a turn ended in an error, for wirings that do not wait in the background, and signals the
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

// settleEntry settles the entry in flight by what this event means for it. left says that a live session owns the entry.
func (h *hook) settleEntry(tx *inbox.Tx, f *recovery.Flight, means recovery.StopMeaning) (left bool, err error) {
	f.Entry = tx.InFlight() // a check or a charge has changed it
	d := f.Entry
	sight := recovery.Sight{Overcome: true, Charged: h.input != nil && d.SessionID == h.input.SessionID}
	switch means {
	case recovery.TurnEnded:
		sight.Ended, sight.Charged = true, true
		if sight.Check, sight.Spent = h.checking.of(d), h.checking.spent; sight.Check != nil && h.checking.over != nil {
			sight.Check, sight.Over = nil, h.checking.over
		}
		if d.Verdict == nil && (d.Check == nil || sight.Check != nil && sight.Check.Verdict == check.Passed) {
			if sight.Missing, err = h.acceptResult(f); err != nil {
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

// settle settles the entry in flight, and remembers it for what follows the commit.
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

// blockedEnough reports whether one more block would exceed --max-blocks. The client counts anew from each turn that no
// block began.
func (h *hook) blockedEnough(tx *inbox.Tx) bool {
	return h.MaxBlocks > 0 && h.input != nil && h.input.StopHookActive && tx.In(h.input.SessionID).Known().Blocks >= h.MaxBlocks
}

// next returns the entry to deliver, or an outcome that says why there is none.
func (h *hook) next(tx *inbox.Tx, still inbox.Mark) (outcome, inbox.Entry, error) {
	asker := h.asker()
	hold, err := recovery.Held(tx, asker)
	if err != nil {
		return 0, inbox.Entry{}, err
	}
	full := h.box.CheckRoom() // an answer could not be recorded
	if h.isHeld(hold, full) {
		return held, inbox.Entry{}, nil
	}
	switch e, err := recovery.Next(tx, asker, still); {
	case errors.Is(err, inbox.ErrEmpty):
		return empty, e, nil
	case errors.Is(err, inbox.ErrTorn):
		return torn, e, nil
	case errors.Is(err, inbox.ErrMore):
		return more, e, nil
	default:
		return 0, e, err
	}
}

// isHeld reports whether delivery is held. It notes once why, and once that the hold has ended.
func (h *hook) isHeld(hold recovery.Hold, full error) bool {
	said, end := "", ""
	switch stopping, pause, backoff := hold.Stopping, hold.Paused, hold.Backoff; {
	case stopping != nil:
		said, end = stopping.String(), inbox.StoppingEnds
		h.pollAgainIn(maxRecheck)
	case pause != nil:
		said, end = pause.String(), pause.Ends()
		if pause.Until != nil {
			h.pollAgainIn(time.Until(*pause.Until))
		}
	case backoff != nil:
		said, end = backoff.String(), inbox.BackoffEnds
		h.pollAgainIn(time.Until(backoff.Until))
	case full != nil:
		said, end = full.Error(), "there is room"
		h.pollAgainIn(maxRecheck)
	}
	switch {
	case said == h.Paused:
	case said == "":
		h.Note("delivery goes on: it was %s", h.Paused)
	default:
		h.Note("%s: nothing is delivered until %s", said, end)
	}
	h.Paused = said
	return said != ""
}
