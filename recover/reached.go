package recover

import (
	"heartbeat/inbox"
	"heartbeat/internal/agent"
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
		Reply: e.Reply, Fresh: e.Fresh, From: e.From, Times: e.Times,
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
	if e := EvidenceOf(d); e.Prompted {
		since = e.BoundSeq // the session starts after the delivery
	}
	switch {
	case since == 0 || d.DeliveredSeq == 0:
		return RestartUnknown
	case s.StartedSeq > since:
		return Restarted
	}
	return NotRestarted // also where an earlier release noted the start, and so before the delivery
}
