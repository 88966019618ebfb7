package hook

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/agent/handed"
	"heartbeat/internal/claude"
	"heartbeat/internal/host"
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
		startedBefore:     e.Boot != "" && e.Boot == host.BootID() && h.began <= e.SinceBoot,
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
		clientRuns:         func() bool { return clientRuns(e) },
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
