package recover

import (
	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/claude"
)

// Unreached reports whether it is proven that the model did not get the entry in flight.
func Unreached(tx *inbox.Tx) bool {
	d := tx.InFlight()
	return EvidenceOf(d).Unreached(tx, d)
}

// Unreached reports whether the transcript of the session that got the entry proves that the model did not get the
// text.
func (e Evidence) Unreached(tx *inbox.Tx, d *inbox.Delivery) bool {
	switch {
	case e.Woken:
		// The client tells a hook before it asks the model; an earlier prompt proves that the hook works in this session.
		return tx.In(d.SessionID).Known().PromptedAt != nil && !e.Bound && !e.Seen(d).Seen().Woke("")
	case e.Prompted:
		return e.neverPrompted(tx, d)
	}
	seen, known := e.ofOneProcess(tx, d)
	return known && seen.Seen().Missed()
}

// ofOneProcess returns what the transcript shows of an entry that a Stop handed over. Only lines written by the
// process that got the entry count; known is false if they cannot be told from others.
func (e Evidence) ofOneProcess(tx *inbox.Tx, d *inbox.Delivery) (seen agent.Delivery, known bool) {
	if e.Woken || e.Prompted || e.TranscriptSize < 0 || e.Transcript == "" {
		return seen, false
	}
	seen = e.ByBlock(d)
	switch SessionRestarted(tx, d) {
	case NotRestarted:
		return seen, true
	case RestartUnknown:
		return seen, false
	}
	path, size := agent.StartOf(tx.In(d.SessionID).Known().StartNote)
	if path != e.Transcript || size <= 0 {
		return seen, false
	}
	seen.End = size
	return seen, true
}

// ByBlock returns the lookup of an entry that a Stop handed over in its session's transcript.
func (e Evidence) ByBlock(d *inbox.Delivery) agent.Delivery {
	return agent.Delivery{
		Path: e.Transcript, Size: e.TranscriptSize, Text: e.Handed(d), PromptID: d.PromptID,
		Reply: e.Reply, Fresh: e.Fresh, From: e.From, Times: int(e.Times),
	}
}

// Finished reports whether the transcript proves that the turn of the entry in flight ended, and returns its reply.
func Finished(tx *inbox.Tx) (reply string, finished bool) {
	d := tx.InFlight()
	e := EvidenceOf(d)
	if e.Prompted {
		// A bound delivery names its own transcript.
		if seen, known := e.sinceStart(tx, d); known || e.IsBound() {
			return seen.Finished()
		}
		return "", false
	}
	if seen, known := e.ofOneProcess(tx, d); known {
		return seen.Seen().Finished()
	}
	return "", false
}

// Seen returns the lookup of an entry that was to wake its session in the session's transcript.
func (e Evidence) Seen(d *inbox.Delivery) agent.Delivery {
	return agent.Delivery{Path: e.Transcript, Size: max(0, e.TranscriptSize), Text: e.Handed(d)}
}

// Restart says whether a session has started again.
type Restart int

// The answers of [SessionRestarted].
const (
	NotRestarted Restart = iota
	Restarted
	RestartUnknown // an earlier release delivered it, or its journal is gone
)

// SessionRestarted tells a resumed session from one whose turn a person ended: only the resumed one has started again
// since the delivery.
func SessionRestarted(tx *inbox.Tx, d *inbox.Delivery) Restart {
	s := tx.In(d.SessionID).Known()
	if s.StartedAt == nil {
		return NotRestarted
	}
	since := d.DeliveredSeq
	if e := EvidenceOf(d); e.Prompted || e.BoundSeq != 0 {
		since = e.BoundSeq // the session may have started after the delivery
	}
	switch {
	case since == 0 || d.DeliveredSeq == 0:
		return RestartUnknown
	case s.StartedSeq > since:
		return Restarted
	}
	return NotRestarted // also if an earlier release noted the start, which then came before the delivery
}

// Prompt is kept with a delivery that is the prompt of a client about to start. It is in flight before the client
// exists. [inbox.Tx.HandedOver] is noted right before the client starts, so without that note nobody got the text.
type Prompt struct {
	Prompted bool
	// Start names this start of the client. Only that client's hook knows the name.
	Start string
	// Hooks says that nothing known keeps the client from running its hooks.
	Hooks bool
	// BoundSeq is the commit (see [inbox.Tx.Seq]) in which the client's hook bound the delivery to the prompt that the
	// client made of it, 0 before.
	BoundSeq int64
}

// IsBound reports whether the client is known to have made a prompt of the text.
func (p Prompt) IsBound() bool { return p.BoundSeq != 0 }

// InPrompt returns the lookup of an entry that was the session's prompt. A bound delivery names its own transcript;
// otherwise path and size are used.
func (e Evidence) InPrompt(d *inbox.Delivery, path string, size int64) claude.Prompted {
	if e.IsBound() {
		path, size = e.Transcript, e.TranscriptSize
	}
	if size < 0 {
		path, size = "", 0
	}
	return claude.Prompted{Path: path, Size: size, Text: d.Text(), PromptID: d.PromptID}
}

// sinceStart returns the lookup in the transcript of the client that got the prompt. known is false if no hook has
// told of that client.
func (e Evidence) sinceStart(tx *inbox.Tx, d *inbox.Delivery) (seen claude.Prompted, known bool) {
	path, size, known := startOf(tx, d, d.SessionID)
	return e.InPrompt(d, path, size), known
}

// startOf returns the transcript of a session, and how long it was, in bytes, when the client started whose prompt the
// delivery is. known is false if no hook has told of that start.
func startOf(tx *inbox.Tx, d *inbox.Delivery, session string) (path string, size int64, known bool) {
	s := tx.In(session).Known()
	if session == "" || d.DeliveredSeq == 0 || s.StartedSeq < d.DeliveredSeq {
		return "", 0, false
	}
	path, size = agent.StartOf(s.StartNote)
	return path, size, true
}

// Kept reports whether the client has kept a conversation of the session, so that it can resume it.
func Kept(s inbox.Session) bool {
	path, _ := agent.StartOf(s.StartNote)
	return claude.TranscriptSize(path) > 0
}

// StartSize returns how long a session's transcript was, in bytes, when the client started whose prompt the delivery
// is. It is -1 if no hook has told of that start.
func StartSize(tx *inbox.Tx, d *inbox.Delivery, session, transcript string) int64 {
	if path, size, known := startOf(tx, d, session); known && path == transcript {
		return size
	}
	return -1
}

// neverPrompted reports whether certainly no model was asked about the text. The client tells its hooks first of the
// session's start, and then of each prompt before it asks the model.
func (e Evidence) neverPrompted(tx *inbox.Tx, d *inbox.Delivery) bool {
	switch {
	case e.IsBound() || d.DeliveredSeq == 0: // 0: the journal with the hand-over note is gone
		return false
	case !tx.IsHandedOver():
		return true
	case d.SessionID == "":
		return false
	}
	seen, known := e.sinceStart(tx, d)
	if !known {
		return e.Hooks
	}
	return !seen.Asked("")
}
