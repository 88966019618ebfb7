package recover

import (
	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/claude"
)

// Unreached reports whether it is proven that the model did not get the entry
// that is in flight: see [Options].
func Unreached(tx *inbox.Tx) bool {
	d := tx.InFlight()
	return EvidenceOf(d).Unreached(tx, d)
}

// Unreached reports whether the transcript of the session that the entry was
// delivered to proves that the model did not get the text.
func (e Evidence) Unreached(tx *inbox.Tx, d *inbox.Delivery) bool {
	switch {
	case e.Woken:
		return e.neverTakenUp(tx, d)
	case e.Prompted:
		return e.neverPrompted(tx, d)
	}
	seen, known := e.ofOneProcess(tx, d)
	return known && seen.Seen().Missed()
}

// ofOneProcess asks the transcript about an entry that a Stop handed over. Only the lines
// count that the process wrote which got the entry; if they cannot be told from others,
// nothing is known.
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
	s, err := tx.Session(d.SessionID)
	path, size := agent.StartOf(s.StartNote)
	if err != nil || path != e.Transcript || size <= 0 {
		return seen, false
	}
	seen.End = size
	return seen, true
}

// ByBlock asks the session's transcript about an entry that a Stop handed over.
func (e Evidence) ByBlock(d *inbox.Delivery) agent.Delivery {
	return agent.Delivery{
		Path: e.Transcript, Size: e.TranscriptSize, Text: e.Handed(d), PromptID: d.PromptID,
		Reply: e.Reply, Fresh: e.Fresh, From: e.From, Times: int(e.Times),
	}
}

// Finished reports whether the transcript proves that the turn of the entry in
// flight came to its end, and what was replied: see [Options].
func Finished(tx *inbox.Tx) (reply string, finished bool) {
	d := tx.InFlight()
	e := EvidenceOf(d)
	if e.Prompted {
		return e.promptFinished(tx, d)
	}
	if seen, known := e.ofOneProcess(tx, d); known {
		return seen.Seen().Finished()
	}
	return "", false
}

// neverTakenUp reports whether the client certainly did not pick the text up. It tells a
// hook before it asks the model, and an earlier prompt shows that the hook works in this
// session.
func (e Evidence) neverTakenUp(tx *inbox.Tx, d *inbox.Delivery) bool {
	s, err := tx.Session(d.SessionID)
	return err == nil && s.PromptedAt != nil && !e.Bound && !e.Seen(d).Seen().Woke("")
}

// Seen asks the session's transcript about an entry that was to wake it.
func (e Evidence) Seen(d *inbox.Delivery) agent.Delivery {
	return agent.Delivery{Path: e.Transcript, Size: max(0, e.TranscriptSize), Text: e.Handed(d)}
}

// Restart says whether a session has started again.
type Restart int

// The answers.
const (
	NotRestarted Restart = iota
	Restarted
	RestartUnknown // the delivery is of an earlier release, or of a journal that is gone
)

// SessionRestarted tells a resumed session from one whose turn a person ended: only
// the first has started again since the delivery.
func SessionRestarted(tx *inbox.Tx, d *inbox.Delivery) Restart {
	s, err := tx.Session(d.SessionID)
	switch {
	case err != nil:
		return RestartUnknown
	case s.StartedAt == nil:
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
	return NotRestarted // also where an earlier release noted the start, and so before the delivery
}

// Prompt is kept with a delivery that is the prompt with which a client is started. It is
// in flight before that client exists, and [inbox.Tx.HandedOver] is noted right before
// the client is started, so that without that note nobody got the text.
type Prompt struct {
	Prompted bool
	// Start names the start of the client. Only the hook of that client has it.
	Start string
	// Hooks says that nothing is known to keep the client from running its hooks.
	Hooks bool
	// BoundSeq is the number of the commit in which the client's hook bound the delivery
	// to the prompt that the client made of it, 0 before: see [inbox.Tx.Seq].
	BoundSeq int64
}

// IsBound reports whether the client is known to have made a prompt of the text.
func (p Prompt) IsBound() bool { return p.BoundSeq != 0 }

// InPrompt asks the transcript at path, unless the delivery names another, about an
// entry that was the session's prompt.
func (e Evidence) InPrompt(d *inbox.Delivery, path string, size int64) claude.Prompted {
	if e.IsBound() {
		path, size = e.Transcript, e.TranscriptSize
	}
	if size < 0 {
		path, size = "", 0
	}
	return claude.Prompted{Path: path, Size: size, Text: d.Text(), PromptID: d.PromptID}
}

// sinceStart asks the transcript of the client that got the prompt. A client that no
// hook has told of is unknown.
func (e Evidence) sinceStart(tx *inbox.Tx, d *inbox.Delivery) (seen claude.Prompted, known bool) {
	s, err := tx.Session(d.SessionID)
	if err != nil || d.SessionID == "" || d.DeliveredSeq == 0 || s.StartedSeq < d.DeliveredSeq {
		return seen, false
	}
	path, size := agent.StartOf(s.StartNote)
	return e.InPrompt(d, path, size), true
}

// Kept reports whether the client has kept a conversation of the session, so that it can
// go on with that.
func Kept(s inbox.Session) bool {
	path, _ := agent.StartOf(s.StartNote)
	return claude.TranscriptSize(path) > 0
}

// StartSize is how long a session's transcript was when the client started that has the
// delivery as its prompt, -1 if no hook has told of that.
func StartSize(tx *inbox.Tx, d *inbox.Delivery, session, transcript string) int64 {
	s, err := tx.Session(session)
	if err != nil || d.DeliveredSeq == 0 || s.StartedSeq < d.DeliveredSeq {
		return -1
	}
	if path, size := agent.StartOf(s.StartNote); path == transcript {
		return size
	}
	return -1
}

// neverPrompted reports whether it is certain that no model was asked about the text. A
// client tells its hooks of the session's start, and then of each prompt, before it asks
// the model.
func (e Evidence) neverPrompted(tx *inbox.Tx, d *inbox.Delivery) bool {
	switch {
	case e.IsBound() || d.DeliveredSeq == 0: // 0: the journal with the note is gone
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

// promptFinished reports whether the transcript proves that the prompt's turn came to its
// end.
func (e Evidence) promptFinished(tx *inbox.Tx, d *inbox.Delivery) (reply string, finished bool) {
	seen, known := e.sinceStart(tx, d)
	if e.IsBound() {
		seen, known = e.InPrompt(d, "", -1), true
	}
	if !known {
		return "", false
	}
	return seen.Finished()
}
