package hook

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/agent/handed"
	"heartbeat/internal/claude"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// judge says what this Stop tells of the entry in flight.
func (h *hook) judge(tx *inbox.Tx, d *inbox.Delivery) verdict {
	f := facts{responded: h.input == nil && tx.Responded()}
	if h.input != nil {
		f = h.factsOf(tx, d)
	}
	r := verdictOf(f)
	if r.verdict == unsure {
		if h.watched.deadline.IsZero() {
			h.watched.deadline = time.Now().Add(transcriptWait)
		}
		h.watched.path, h.watched.size = r.waitFor, claude.TranscriptSize(r.waitFor)
	}
	if r.unproven {
		h.Note("nothing is taken for an answer to the entry %s: this Stop says what the one said that delivered it, and no transcript shows that it is another", words.Name(d.ID(), d.EntryID))
	}
	return r.verdict
}

// keepLate adds what this Stop says to the dead letter of the entry whose turn it ends, if the entry was set aside
// meanwhile.
func (h *hook) keepLate(tx *inbox.Tx) error {
	in := h.input
	d, handed := tx.In(in.SessionID).Late(in.PromptID)
	return tx.In(in.SessionID).LateAnswer(in.PromptID, in.LastMessage, d != nil && h.endsLate(d, handed))
}

// endsLate reports whether this Stop surely ends the turn of a delivery whose entry was set aside.
func (h *hook) endsLate(d *inbox.Delivery, handed bool) bool {
	e := h.evidenceOf(d)
	switch {
	case h.startedBefore(e) || !h.sameClient(d, e):
		return false
	case e.Woken:
		return e.Bound
	case e.Prompted:
		return e.IsBound()
	}
	return (handed || !e.Notes) && (e.TranscriptSize < 0 || !h.sameInput(e))
}

// startedBefore reports whether this hook started before the delivery.
func (h *hook) startedBefore(e recovery.Evidence) bool {
	return e.Boot != "" && e.Boot == machine.BootID() && h.began <= e.SinceBoot
}

// sameInput reports whether this Stop says what the one said that delivered.
func (h *hook) sameInput(e recovery.Evidence) bool {
	return h.input.StopHookActive == e.Active && claude.ReplySum(h.input.LastMessage) == e.Reply
}

func (h *hook) factsOf(tx *inbox.Tx, d *inbox.Delivery) facts {
	in, e := h.input, h.evidenceOf(d)
	byBlock := func(transcript string) agent.Seen {
		delivery := e.ByBlock(d)
		delivery.Path = transcript
		return delivery.Seen()
	}
	return facts{
		in: in, e: e,
		sameSession: in.SessionID == d.SessionID, samePrompt: in.PromptID == d.PromptID, namesPrompt: d.PromptID != "",
		startedBefore: h.startedBefore(e),
		start:         h.Start,
		handedOver:    tx.IsHandedOver(),
		background:    h.Rewake,
		patient:       h.watched.deadline.IsZero() || time.Now().Before(h.watched.deadline),

		sameInput:         func() bool { return h.sameInput(e) },
		transcriptIsThere: func() bool { return claude.TranscriptSize(in.TranscriptPath) > 0 },
		showsAnswer: func() bool {
			seen := byBlock(in.TranscriptPath)
			return seen.Answered() || seen.NextTurn() != handed.Unknown
		},
		sameClient:     func() bool { return h.sameClient(d, e) },
		deliveryClient: func() bool { return isClient(h.clientPID(), e) },
		turnAfter:      func() handed.Turn { return byBlock(e.Transcript).NextTurn() },
		tookUp: func() bool {
			if e.Prompted {
				return in.PromptID != "" && e.InPrompt(d, in.TranscriptPath, 0).Asked(in.PromptID)
			}
			return in.PromptID != "" && e.Seen(d).Seen().Woke(in.PromptID)
		},
		restarted: func() recovery.Restart { return recovery.SessionRestarted(tx, d) },
		tasksRun:  func() bool { return len(e.Running(in.Tasks)) > 0 && !e.Over(time.Duration(h.Background)) },
	}
}

// evidenceOf returns the evidence of a delivery, which one Stop asks for several times.
func (h *hook) evidenceOf(d *inbox.Delivery) recovery.Evidence {
	if h.keptOf != d {
		h.keptOf, h.kept = d, recovery.EvidenceOf(d)
	}
	return h.kept
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
	if h.input == nil {
		return h.client().PID(h.parent)
	}
	if !h.clientSought {
		h.clientIs, h.clientSought = h.client().PID(h.parent), true
	}
	return h.clientIs
}

// isClient reports whether this hook's client is the very process that got the entry. The id alone does not tell: in
// containers it is often 1.
func isClient(pid int, e recovery.Evidence) bool {
	if pid == 0 && e.PID == 0 {
		return true // a client that names itself nowhere
	}
	return pid == e.PID && e.ProcessStart != 0 && e.Life() == machine.Alive
}

// sameClient reports whether the client around this hook got the entry. Its session may have another id by now.
func (h *hook) sameClient(d *inbox.Delivery, e recovery.Evidence) bool {
	if pid := h.clientPID(); pid != 0 && e.PID != 0 {
		return pid == e.PID && e.Life() == machine.Alive
	}
	return h.input.SessionID == d.SessionID
}

const (
	// transcriptWait is how long the transcript may take to show an answer: the client writes it late.
	transcriptWait = 1500 * time.Millisecond
	transcriptPoll = 10 * time.Millisecond
)
