package hook

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/host"
	"heartbeat/internal/why"
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
	byBlock := func(transcript string) claude.Delivery {
		seen := e.ByBlock(d)
		seen.Path = transcript
		return seen
	}
	return facts{
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
			return seen.Answered() || seen.NextTurn() != claude.Unknown
		},
		sameClient:     func() bool { return h.sameClient(d, e) },
		deliveryClient: func() bool { return isClient(e) },

		compares:    e.TranscriptSize >= 0,
		namesPrompt: d.PromptID != "",
		notes:       e.Notes, handedOver: tx.IsHandedOver(),
		woken: e.Woken, bound: e.Bound, held: e.Held,
		deliveryTranscript: e.Transcript,
		turnAfter:          func() claude.Turn { return byBlock(e.Transcript).NextTurn() },
		tookUp:             func() bool { return in.PromptID != "" && e.Seen(d).Woke(in.PromptID) },
		clientRuns:         func() bool { return clientRuns(e) },
		restarted:          func() recovery.Restart { return recovery.SessionRestarted(tx, d) },
		tasksRun: func() bool {
			return len(e.Running(in.Tasks)) > 0 && !e.Over(time.Duration(h.Background))
		},
		patient: h.watched.mayTell(),
	}
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

// neverReached asks the transcript of the session that the entry in flight was
// delivered to, on behalf of a Stop.
func (h *hook) neverReached(tx *inbox.Tx) bool {
	d := tx.InFlight()
	e := h.evidenceOf(d)
	if !e.Woken && recovery.SessionRestarted(tx, d) != recovery.Restarted && h.input.SessionID == d.SessionID && !isClient(e) {
		return false // resumed in another process, nobody noted when
	}
	return e.Unreached(tx, d)
}

// isClient reports whether this hook's client is the very process that the entry
// was delivered to. In a container each may have the number 1.
func isClient(e recovery.Evidence) bool {
	pid := claude.PID()
	if pid == 0 && e.Client == 0 {
		return true // one that names itself nowhere
	}
	return int64(pid) == e.Client && e.ClientStart != 0 && clientRuns(e)
}

// sameClient reports whether the entry was handed to the client around this hook:
// its session may have another name by now.
func (h *hook) sameClient(d *inbox.Delivery, e recovery.Evidence) bool {
	if pid := claude.PID(); pid != 0 && e.Client != 0 {
		return int64(pid) == e.Client && clientRuns(e)
	}
	return h.input.SessionID == d.SessionID
}

// clientRuns reports whether the very process lives that the entry was handed to.
func clientRuns(e recovery.Evidence) bool { return why.LifeOfClient(e) == why.Alive }

// clientGone reports whether it is certain that it does not.
func clientGone(e recovery.Evidence) bool {
	life := why.LifeOfClient(e)
	return life == why.Gone || life == why.Rebooted
}
