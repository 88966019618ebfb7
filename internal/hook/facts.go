package hook

import (
	"context"
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
		h.watched.begin(r.waitFor)
	}
	if r.unproven {
		h.Note("nothing is taken for an answer to the entry %s: this Stop says what the one said that delivered it, and no transcript shows that it is another", words.Name(d.ID(), d.EntryID))
	}
	return r.verdict
}

// keepLate keeps what this Stop says with the dead letter of the entry whose turn it ends, if
// that was set aside meanwhile.
func (h *hook) keepLate(tx *inbox.Tx) error {
	in := h.input
	return tx.LateAnswer(in.SessionID, in.PromptID, in.LastMessage, func(d *inbox.Delivery, handed bool) bool {
		f := h.factsOf(tx, d)
		switch {
		case f.startedBefore || !f.sameClient():
			return false
		case f.woken || f.prompted:
			return f.bound
		}
		return (handed || !f.notes) && !(f.compares && f.sameInput())
	})
}

// factsOf gathers what a verdict rests on.
func (h *hook) factsOf(tx *inbox.Tx, d *inbox.Delivery) facts {
	in, e := h.input, h.evidenceOf(d)
	byBlock := func(transcript string) agent.Seen {
		delivery := e.ByBlock(d)
		delivery.Path = transcript
		return delivery.Seen()
	}
	f := facts{
		told:        true,
		sameSession: in.SessionID == d.SessionID, samePrompt: in.PromptID == d.PromptID,
		startedBefore:     e.Boot != "" && e.Boot == machine.BootID() && h.began <= e.SinceBoot,
		sameInput:         func() bool { return in.StopHookActive == e.Active && claude.ReplySum(in.LastMessage) == e.Reply },
		continued:         in.StopHookActive,
		background:        h.Rewake,
		transcript:        in.TranscriptPath,
		transcriptIsThere: func() bool { return claude.TranscriptSize(in.TranscriptPath) > 0 },
		showsAnswer: func() bool {
			seen := byBlock(in.TranscriptPath)
			return seen.Answered() || seen.NextTurn() != handed.Unknown
		},
		sameClient:     func() bool { return h.sameClient(d, e) },
		deliveryClient: func() bool { return isClient(h.clientPID(), e) },

		compares:    e.TranscriptSize >= 0,
		namesPrompt: d.PromptID != "",
		notes:       e.Notes, handedOver: tx.IsHandedOver(),
		woken: e.Woken, bound: e.Bound, held: e.Held,
		turnBefore:         e.Before != "" && in.PromptID == e.Before,
		deliveryTranscript: e.Transcript,
		turnAfter:          func() handed.Turn { return byBlock(e.Transcript).NextTurn() },
		tookUp:             func() bool { return in.PromptID != "" && e.Seen(d).Seen().Woke(in.PromptID) },
		restarted:          func() recovery.Restart { return recovery.SessionRestarted(tx, d) },
		tasksRun: func() bool {
			return len(e.Running(in.Tasks)) > 0 && !e.Over(time.Duration(h.Background))
		},
		patient: h.watched.mayTell(),
	}
	if e.Prompted {
		f.prompted, f.bound, f.ours, f.others = true, e.IsBound(), h.Start == e.Start, h.Start != "" && h.Start != e.Start
		f.tookUp = func() bool { return in.PromptID != "" && e.InPrompt(d, in.TranscriptPath, 0).Asked(in.PromptID) }
	}
	return f
}

// evidenceOf is what is kept with a delivery, which is asked several times in a Stop.
func (h *hook) evidenceOf(d *inbox.Delivery) recovery.Evidence {
	if h.kept.of != d {
		h.kept.of, h.kept.Evidence = d, recovery.EvidenceOf(d)
	}
	return h.kept.Evidence
}

// keptEvidence is the evidence of a delivery, read once.
type keptEvidence struct {
	of *inbox.Delivery
	recovery.Evidence
}

// client is what is known of the client that this hook serves.
func (h *hook) client() *agent.Agent {
	if h.input == nil {
		return agent.Of("")
	}
	return agent.Of(h.input.TranscriptPath)
}

// clientPID is its process, or 0. It is looked for once: for a client that does not name it,
// the processes above this one are asked.
func (h *hook) clientPID() int {
	if h.input == nil {
		return h.client().PID(h.parent)
	}
	if !h.clientSought {
		h.clientIs, h.clientSought = h.client().PID(h.parent), true
	}
	return h.clientIs
}

// isClient reports whether this hook's client is the very process that the entry
// was delivered to. In a container each may have the number 1.
func isClient(pid int, e recovery.Evidence) bool {
	if pid == 0 && e.Client == 0 {
		return true // one that names itself nowhere
	}
	return int64(pid) == e.Client && e.ClientStart != 0 && clientRuns(e)
}

// sameClient reports whether the entry was handed to the client around this hook:
// its session may have another name by now.
func (h *hook) sameClient(d *inbox.Delivery, e recovery.Evidence) bool {
	if pid := h.clientPID(); pid != 0 && e.Client != 0 {
		return int64(pid) == e.Client && clientRuns(e)
	}
	return h.input.SessionID == d.SessionID
}

// clientRuns reports whether the very process lives that the entry was handed to.
func clientRuns(e recovery.Evidence) bool { return e.Process().Life() == machine.Alive }

// clientGone reports whether it is certain that it does not.
func clientGone(e recovery.Evidence) bool {
	return e.Process().Life().Ended()
}

const (
	// transcriptWait is how long the transcript is given to show an answer: the
	// client writes it late.
	transcriptWait = 1500 * time.Millisecond
	transcriptPoll = 10 * time.Millisecond
)

// transcriptWatch is what a hook waits for that cannot tell yet.
type transcriptWatch struct {
	path     string
	size     int64     // of the transcript when it was asked
	deadline time.Time // zero before the first wait
}

// mayTell reports whether the transcript may still be given time.
func (w *transcriptWatch) mayTell() bool {
	return w.deadline.IsZero() || time.Now().Before(w.deadline)
}

// begin waits for a transcript to tell more than it does now.
func (w *transcriptWatch) begin(path string) {
	if w.deadline.IsZero() {
		w.deadline = time.Now().Add(transcriptWait)
	}
	w.path, w.size = path, claude.TranscriptSize(path)
}

// await returns once the transcript has grown or was given its time, and not before,
// since a transcript may grow without end. The inbox's lock is free meanwhile: a hook
// that waits here is mostly the second one of a Stop, and others have work to do.
func (w *transcriptWatch) await(ctx context.Context) {
	for grown := false; !grown && time.Now().Before(w.deadline) && ctx.Err() == nil; {
		time.Sleep(transcriptPoll)
		grown = claude.TranscriptSize(w.path) != w.size
	}
}
