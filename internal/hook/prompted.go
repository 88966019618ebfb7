package hook

import (
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
			e.Bound = true
			h.placeTurn(tx, false)
			if err := tx.Bind(inbox.Recipient{SessionID: in.SessionID, PromptID: in.PromptID, Evidence: e.Encode()}); err != nil {
				return err
			}
		}
	}
	if w, err := tx.Waiter(); err != nil {
		return err
	} else if w != nil && w.SessionID == in.SessionID {
		tx.StopWaiting()
	}
	return tx.PromptSession(in.SessionID)
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
