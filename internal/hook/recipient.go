package hook

import (
	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/host"
	recovery "heartbeat/recover"
)

// recipient is who gets the entry, and how it will be told that it was answered.
func (h *hook) recipient(next inbox.Entry, spill string) inbox.Recipient {
	in := h.input
	if in == nil {
		return inbox.Recipient{}
	}
	e := h.evidence()
	e.Notes, e.RanBefore, e.Spill = true, idsOf(in.Tasks), spill
	e.Fresh = !in.StopHookActive
	if d := h.answered; d != nil && d.SessionID == in.SessionID {
		before := h.evidenceOf(d)
		e.Fresh = e.Fresh || before.Reply != e.Reply
		if d.Text() == next.Text && before.Transcript == e.Transcript {
			e.Times, e.From = before.Repeated()
		}
	}
	return inbox.Recipient{SessionID: in.SessionID, PromptID: in.PromptID, Evidence: e.Encode()}
}

// evidence is what identifies this hook's event.
func (h *hook) evidence() recovery.Evidence {
	in := h.input
	e := recovery.Evidence{
		Active: in.StopHookActive, Reply: claude.ReplySum(in.LastMessage), Transcript: in.TranscriptPath,
		TranscriptSize: claude.TranscriptSize(in.TranscriptPath),
		SinceBoot:      host.SinceBoot(),
	}
	e.SetProcess(recovery.ProcessOf(h.clientPID()))
	return e
}
