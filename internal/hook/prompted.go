package hook

import (
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
)

// prompted acts on a prompt that the session is about to send to the model. With a
// prompt of its own the client takes up the entry that woke it; the entry then belongs
// to that turn. Either way the session is at work, and wakes for nothing until
// its next Stop.
func (h *hook) prompted(tx *inbox.Tx) error {
	in := h.input
	if d := tx.InFlight(); d != nil {
		e := h.evidenceOf(d)
		if e.Woken && !e.Bound && h.sameClient(d, e) && claude.IsWakePrompt(in.Prompt, e.Handed(d)) {
			s, err := tx.Session(in.SessionID)
			if err != nil {
				return err
			}
			e.Bound, e.Before = true, s.PromptID
			h.placeTurn(tx, false)
			if err := tx.Bind(inbox.Recipient{SessionID: in.SessionID, PromptID: in.PromptID, Evidence: e.Encode()}); err != nil {
				return err
			}
		}
		h.leaveTurn(tx)
	}
	if w, err := tx.Waiter(); err != nil {
		return err
	} else if w != nil && w.SessionID == in.SessionID {
		tx.StopWaiting()
	}
	return tx.PromptSession(in.SessionID, in.PromptID)
}

// asksElse reports whether a person has begun another turn in the session that has the
// entry in flight: what that costs is not the entry's. A task that the entry left running
// in the background goes on with it, and without a transcript nothing is counted.
func (h *hook) asksElse(d *inbox.Delivery) bool {
	in := h.input
	return in.TranscriptPath != "" && in.SessionID == d.SessionID && in.PromptID != "" && d.PromptID != "" && in.PromptID != d.PromptID &&
		!strings.HasPrefix(strings.TrimSpace(in.Prompt), claude.TaskNotification)
}

// leaveTurn ends what the entry in flight costs, if a person has begun another turn.
func (h *hook) leaveTurn(tx *inbox.Tx) {
	if d := tx.InFlight(); d != nil && h.asksElse(d) {
		h.placeTurn(tx, false)
		tx.LeaveTurn()
	}
}

// askedElse does so for a prompt that tells nothing else. Most are told with no entry in
// flight, and take no lock.
func (h *hook) askedElse() int {
	v, err := h.box.View()
	if err != nil {
		h.Complain(err)
		return cli.ExitOK
	}
	d := v.InFlight()
	elsewhere := d != nil && h.asksElse(d)
	if err := v.Close(); err != nil {
		h.Complain(err)
	}
	if !elsewhere {
		return cli.ExitOK
	}
	return h.record(func(tx *inbox.Tx) error { h.leaveTurn(tx); return nil })
}

// What a client says when it waits for a person.
const (
	notifyPermission = "permission_prompt"
	notifyInput      = "agent_needs_input"
)

// notified records that the session waits for a person. Other notifications tell
// of nothing that an operator should know.
func (h *hook) notified() int {
	in := h.input
	if in.Notification != notifyPermission && in.Notification != notifyInput {
		return cli.ExitOK
	}
	return h.record(func(tx *inbox.Tx) error { return tx.Ask(in.SessionID, in.Notification, in.Message) })
}
