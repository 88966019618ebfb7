package hook

import (
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	recovery "heartbeat/recover"
)

// startedWith binds the entry that a client was started with to the prompt that the
// client has made of it. The Stop of that prompt brings the answer.
func (h *hook) startedWith(tx *inbox.Tx) error {
	d, in := tx.InFlight(), h.input
	if d == nil {
		return nil
	}
	e := h.evidenceOf(d)
	another := d.SessionID != "" && d.SessionID != in.SessionID
	switch {
	case e.Prompted && !e.IsBound() && e.Start == h.Start && !another && in.Prompt == d.Text():
		h.placeTurn(tx, false)
		return tx.Bind(h.prompt(tx, d, e))
	case strings.HasPrefix(strings.TrimSpace(in.Prompt), claude.TaskNotification):
		return h.toldOfTask(tx)
	}
	return nil
}

// prompt is the recipient of such an entry: this prompt of this client.
func (h *hook) prompt(tx *inbox.Tx, d *inbox.Delivery, e recovery.Evidence) inbox.Recipient {
	in := h.input
	e.BoundSeq = tx.Seq()
	e.SetProcess(recovery.ProcessOf(h.clientPID()))
	e.Transcript, e.TranscriptSize = in.TranscriptPath, recovery.StartSize(tx, d, in.SessionID, in.TranscriptPath)
	if e.TranscriptSize < 0 && in.PromptID != "" {
		e.TranscriptSize = 0 // the prompt's name tells its lines from older ones
	}
	return inbox.Recipient{SessionID: in.SessionID, PromptID: in.PromptID, Evidence: e.Encode()}
}

// awaitsPrompt reports whether this event is one that an entry's fate rests on, and that
// nobody waits for at a terminal.
func (h *hook) awaitsPrompt() bool {
	return h.Start != "" && (h.input.Event == claude.EventSessionStart || h.input.Event == claude.EventUserPromptSubmit)
}
