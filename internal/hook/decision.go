package hook

import (
	"errors"
	"time"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

// This file is the table of transitions in docs/design.md, as far as a hook decides them.

// outcome is what one look at the inbox came to.
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
	more                         // so much was settled that it is committed before looking on
	unchecked                    // the check of the entry in flight has to run first
	unmet                        // the check failed: the entry in flight goes on with what it printed
)

// decide acts on the end of a turn: it settles what was in flight as the turn shows, and delivers what comes next.
func (h *hook) decide(tx *inbox.Tx, still inbox.Mark) (outcome, string, error) {
	switch o, err := h.endTurn(tx); {
	case err == nil && o == unmet:
		return h.goOn(tx)
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
	if ready, err := h.sessionIsReady(tx, w); err != nil || !ready {
		return held, "", err
	}
	if f != nil && f.Entry.Check != nil && f.Entry.Check.Untold && f.SameClient() {
		return h.wakeOn(tx)
	}
	if ready, err := h.nothingInFlight(tx); err != nil || !ready {
		return held, "", err
	}
	return h.deliverNext(tx, still)
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
		h.says = h.announcement(e)
	}
	return h.decideHandover(tx, text)
}

// decideHandover is the decision to hand this text over for the entry in flight.
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
		h.contest(tx)
		if h.Limits.Day.Any() {
			h.chargeEnd(tx)
		}
	}
	if f := h.flight(tx); f != nil {
		says := h.judge(f)
		switch says {
		case recovery.SameStop, recovery.Unproven, recovery.Pending:
			return leave, nil
		case recovery.Unsure:
			return unclear, nil
		case recovery.TurnEnded:
			if rests, err := h.holdForTasks(tx, f); rests || err != nil {
				return resting, err
			}
			if o, err := h.mustCheck(tx, f); o != 0 || err != nil {
				return o, err
			}
		}
		h.chargeEnd(tx)
		if left, err := h.settleEntry(tx, f, says); err != nil || left {
			return owned, err
		}
	}
	switch {
	case h.gate.shut,
		h.MaxEntries > 0 && tx.In(session).Acknowledged() >= h.MaxEntries,
		!h.Until.IsZero() && time.Until(h.Until.Time) <= 0,
		h.blockedEnough(tx):
		return approved, nil
	}
	return 0, nil
}

// blockedEnough reports whether one more block would exceed --max-blocks. The client restarts its count at each turn
// that no block began.
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

// isHeld reports whether delivery is held. It says once why, and once that it goes on.
func (h *hook) isHeld(hold recovery.Hold, full error) bool {
	said, end := "", ""
	switch stopping, pause, backoff := hold.Stopping, hold.Paused, hold.Backoff; {
	case stopping != nil:
		said, end = stopping.String(), inbox.StoppingEnds
		h.lookAgainIn(maxRecheck)
	case pause != nil:
		said, end = pause.String(), pause.Ends()
		if pause.Until != nil {
			h.lookAgainIn(time.Until(*pause.Until))
		}
	case backoff != nil:
		said, end = backoff.String(), inbox.BackoffEnds
		h.lookAgainIn(time.Until(backoff.Until))
	case full != nil:
		said, end = full.Error(), "there is room"
		h.lookAgainIn(maxRecheck)
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
