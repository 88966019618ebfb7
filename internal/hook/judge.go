package hook

import (
	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/host"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// verdict is what a Stop says about the entry in flight.
type verdict int

const (
	answered    verdict = iota + 1 // this Stop ends the turn that the entry was
	sameStop                       // this Stop is the one that delivered the entry
	interrupted                    // its session goes on, with another prompt
	orphaned                       // its session is gone, or was resumed
	pending                        // it was handed to a session that has not taken it up, or is at it
	unsure                         // the transcript, which is written late, may tell soon
)

// recipient is who gets the entry, and how it will be told that it was answered.
func (h *hook) recipient(next inbox.Entry) inbox.Recipient {
	in := h.input
	if in == nil {
		return inbox.Recipient{}
	}
	e := h.evidence()
	e.Notes, e.RanBefore = true, idsOf(in.Tasks)
	e.Fresh = !in.StopHookActive
	if d := h.answered; d != nil && d.SessionID == in.SessionID {
		before := recovery.EvidenceOf(d)
		e.Fresh = e.Fresh || before.Reply != e.Reply
		if d.Text() == next.Text && before.Transcript == e.Transcript {
			e.Times, e.From = before.Repeated()
		}
	}
	return inbox.Recipient{SessionID: in.SessionID, PromptID: in.PromptID, Evidence: e.Encode()}
}

// evidence is what identifies this hook's event.
func (h *hook) evidence() recovery.Evidence {
	in, pid := h.input, claude.PID()
	e := recovery.Evidence{
		Active: in.StopHookActive, Reply: claude.ReplySum(in.LastMessage), Transcript: in.TranscriptPath,
		TranscriptSize: claude.TranscriptSize(in.TranscriptPath),
		Boot:           host.BootID(), SinceBoot: host.SinceBoot(), Client: int64(pid), ClientStart: host.ProcessStart(pid),
	}
	if e.ClientStart != 0 {
		e.Namespace = host.PIDNamespace()
	}
	return e
}

// judge says what this Stop tells of the entry in flight. Without a client's
// input there is only heartbeat-rs's rule: the flag file says answered.
func (h *hook) judge(tx *inbox.Tx, d *inbox.Delivery) verdict {
	in := h.input
	if in == nil {
		if tx.Responded() {
			return answered
		}
		return orphaned
	}
	e := recovery.EvidenceOf(d)
	if e.Woken {
		return h.judgeWoken(tx, d, e)
	}
	if in.SessionID == d.SessionID && in.PromptID == d.PromptID {
		switch v := h.isDeliveringStop(d, e); {
		case v != 0:
			return v
		case d.PromptID != "" || in.StopHookActive:
			return h.judgeAnswer(tx, d, e)
		}
	}
	if e.Held && in.SessionID == d.SessionID && recovery.SessionRestarted(tx, d) == recovery.NotRestarted && h.isClient(e) {
		return h.judgeHeld(e)
	}
	return h.leftBehind(tx, d)
}

// judgeAnswer is about a later Stop of the turn that the entry was delivered in.
// Another hook may have made that turn go on. So where it was not noted that the
// text went out, the transcript has to show that the model had it.
func (h *hook) judgeAnswer(tx *inbox.Tx, d *inbox.Delivery, e recovery.Evidence) verdict {
	if tx.IsHandedOver() || !e.Notes {
		return answered
	}
	switch e.ByBlock(d).NextTurn() {
	case claude.WithText:
		return answered
	case claude.WithoutText:
		return orphaned // which goes back to the queue, since the text never arrived
	}
	return h.notYet(e.Transcript, orphaned)
}

// leftBehind tells a turn that a person ended from a session that is gone.
func (h *hook) leftBehind(tx *inbox.Tx, d *inbox.Delivery) verdict {
	if h.input.SessionID == d.SessionID && recovery.SessionRestarted(tx, d) != recovery.Restarted {
		return interrupted
	}
	return orphaned
}

// isDeliveringStop recognises a second hook of the Stop that delivered d: no
// verdict means that this is another Stop. A process that started before the
// delivery cannot bring its answer. One whose input is another brings it. Where
// the input is the very same, as it is when the model says the same thing twice,
// the transcript tells; where it cannot, nothing is taken for an answer.
func (h *hook) isDeliveringStop(d *inbox.Delivery, e recovery.Evidence) verdict {
	in := h.input
	switch {
	case e.TranscriptSize < 0:
		return 0
	case e.Boot != "" && e.Boot == host.BootID() && h.began <= e.SinceBoot:
		return sameStop
	case in.StopHookActive != e.Active || claude.ReplySum(in.LastMessage) != e.Reply:
		return 0
	case h.Rewake || in.TranscriptPath == "":
		return sameStop // in the background an answer that shows may be to a later Stop
	}
	seen := e.ByBlock(d)
	seen.Path = in.TranscriptPath
	if seen.Answered() || seen.NextTurn() != claude.Unknown {
		return 0
	}
	v := sameStop
	if claude.TranscriptSize(in.TranscriptPath) > 0 { // one that is not there shows nothing later either
		v = h.notYet(in.TranscriptPath, sameStop)
	}
	if v == sameStop {
		h.Note("nothing is taken for an answer to the entry %s: this Stop says what the one said that delivered it, and no transcript shows that it is another", words.Name(d.ID(), d.EntryID))
	}
	return v
}

// neverReached asks the transcript of the session that the entry in flight was
// delivered to, on behalf of a Stop.
func (h *hook) neverReached(tx *inbox.Tx) bool {
	d := tx.InFlight()
	e := recovery.EvidenceOf(d)
	if !e.Woken && recovery.SessionRestarted(tx, d) != recovery.Restarted && h.input.SessionID == d.SessionID && !h.isClient(e) {
		return false // resumed in another process, nobody noted when
	}
	return e.Unreached(tx, d)
}

// isClient reports whether this hook's client is the very process that the entry
// was delivered to. In a container each may have the number 1.
func (h *hook) isClient(e recovery.Evidence) bool {
	pid := claude.PID()
	if pid == 0 && e.Client == 0 {
		return true // one that names itself nowhere
	}
	return int64(pid) == e.Client && e.ClientStart != 0 && clientRuns(e)
}
