package evidence

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
)

// Unreached reports whether it is proven that the model did not get the entry
// that is in flight: see recover.Options.
func Unreached(tx *inbox.Tx) bool {
	d := tx.InFlight()
	return Of(d).Unreached(tx, d)
}

// Unreached reports whether the transcript of the session that the entry was
// delivered to proves that the model did not get the text.
func (e Evidence) Unreached(tx *inbox.Tx, d *inbox.Delivery) bool {
	if e.Woken {
		return e.neverTakenUp(tx, d)
	}
	if e.TranscriptSize < 0 || e.Transcript == "" {
		return false
	}
	seen := e.ByBlock(d)
	if at, resumed := ResumedSince(tx, d); resumed {
		seen.Resumed = at
	}
	return seen.Missed()
}

// ByBlock asks the session's transcript about an entry that a Stop handed over.
func (e Evidence) ByBlock(d *inbox.Delivery) claude.Delivery {
	return claude.Delivery{Path: e.Transcript, Size: e.TranscriptSize, Text: d.Text(), At: d.DeliveredAt}
}

// neverTakenUp reports whether it is certain that the client did not take the
// text up. It announces that to a hook before it asks the model; that the hook
// works in the session is known from the prompt before.
func (e Evidence) neverTakenUp(tx *inbox.Tx, d *inbox.Delivery) bool {
	s, err := tx.Session(d.SessionID)
	return err == nil && s.PromptedAt != nil && !e.Bound && !e.Seen(d).TookUp("")
}

// Seen asks the session's transcript about an entry that was to wake it.
func (e Evidence) Seen(d *inbox.Delivery) claude.Delivery {
	return claude.Delivery{Path: e.Transcript, Size: max(0, e.TranscriptSize), Text: e.Handed(d), At: d.DeliveredAt}
}

// ResumedSince tells a resumed session from one whose turn a person ended: only
// the first has started again since the delivery.
func ResumedSince(tx *inbox.Tx, d *inbox.Delivery) (at time.Time, resumed bool) {
	s, err := tx.Session(d.SessionID)
	if err != nil || s.StartedAt == nil || !s.StartedAt.After(d.DeliveredAt) {
		return time.Time{}, false
	}
	return *s.StartedAt, true
}
