package main

import (
	"crypto/sha256"
	"encoding/hex"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/host"
	"heartbeat/recover/evidence"
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

func (h *hook) recipient() inbox.Recipient {
	in := h.input
	if in == nil {
		return inbox.Recipient{}
	}
	e := h.evidence()
	e.Notes = true
	return inbox.Recipient{SessionID: in.SessionID, PromptID: in.PromptID, Evidence: e.Encode()}
}

// evidence is what identifies this hook's event.
func (h *hook) evidence() evidence.Evidence {
	in := h.input
	return evidence.Evidence{
		Active: in.StopHookActive, Reply: replySum(in), Transcript: in.TranscriptPath,
		TranscriptSize: claude.TranscriptSize(in.TranscriptPath),
		Boot:           host.BootID(), SinceBoot: host.SinceBoot(), Client: int64(claude.PID()),
	}
}

func replySum(in *claude.Input) string {
	sum := sha256.Sum256([]byte(in.LastMessage))
	return hex.EncodeToString(sum[:])
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
	e := evidence.Of(d)
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
	return h.leftBehind(tx, d)
}

// judgeAnswer is about a later Stop of the turn that the entry was delivered in.
// Another hook may have made that turn go on. So where it was not noted that the
// text went out, the transcript has to show that the model had it.
func (h *hook) judgeAnswer(tx *inbox.Tx, d *inbox.Delivery, e evidence.Evidence) verdict {
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
	if _, resumed := evidence.ResumedSince(tx, d); h.input.SessionID == d.SessionID && !resumed {
		return interrupted
	}
	return orphaned
}

// isDeliveringStop recognises a second hook of the Stop that delivered d: no
// verdict means that this is another Stop. A process that started before the
// delivery cannot bring its answer. One whose input is another brings it. Where
// the input is the very same, as it is when the model says the same thing twice,
// the transcript tells; where it cannot, nothing is taken for an answer.
func (h *hook) isDeliveringStop(d *inbox.Delivery, e evidence.Evidence) verdict {
	in := h.input
	switch {
	case e.TranscriptSize < 0:
		return 0
	case e.Boot != "" && e.Boot == host.BootID() && h.began <= e.SinceBoot:
		return sameStop
	case in.StopHookActive != e.Active || replySum(in) != e.Reply:
		return 0
	case h.rewake || in.TranscriptPath == "":
		return sameStop // in the background an answer that shows may be to a later Stop
	}
	seen := e.ByBlock(d)
	seen.Path = in.TranscriptPath
	if seen.Answered() || seen.NextTurn() != claude.Unknown {
		return 0
	}
	return h.notYet(in.TranscriptPath, sameStop)
}

// neverReached asks the transcript of the session that the entry in flight was
// delivered to, on behalf of a Stop.
func (h *hook) neverReached(tx *inbox.Tx) bool {
	d := tx.InFlight()
	e := evidence.Of(d)
	if _, known := evidence.ResumedSince(tx, d); !e.Woken && !known && h.input.SessionID == d.SessionID && e.Client != int64(claude.PID()) {
		return false // resumed in another process, nobody noted when
	}
	return e.Unreached(tx, d)
}
