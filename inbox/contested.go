package inbox

import "encoding/json"

// Doubt is an entry of a session that was settled as answered while somebody might still
// have said that its turn was not over.
type Doubt struct {
	EntryID string `json:"entry_id"`
	ID      string `json:"id,omitempty"`
	Start   int64  `json:"start_offset"`
	Attempt int    `json:"attempt"`
	// Note is the consumer's, to find out by.
	Note json.RawMessage `json:"note,omitempty"`
}

var doubtMember = []byte(`"doubt":`)

// LeaveInDoubt records that an entry was settled so, until [Tx.Contest].
func (t *Tx) LeaveInDoubt(session string, d *Delivery, note json.RawMessage) error {
	return t.changeSession(session, func(s *Session) { s.Doubt = &Doubt{d.EntryID, d.ID(), d.StartOffset, d.Attempt, note} })
}

// Doubt is what [Tx.LeaveInDoubt] recorded of a session, nil for nothing.
func (t *Tx) Doubt(session string) *Doubt {
	if s := t.sessionWith(doubtMember, session); s != nil {
		return s.Doubt
	}
	return nil
}

// Contest ends the doubt. An objection becomes an event of the entry, whose result stays.
func (t *Tx) Contest(session, objection string) error {
	if d := t.Doubt(session); d != nil && objection != "" {
		e := Event{Event: EventContested, EntryID: d.EntryID, ID: d.ID, Start: d.Start, Attempt: d.Attempt, Session: session, Reason: oneLine(objection)}
		if err := t.addEvent(e); err != nil {
			return err
		}
	}
	return t.changeSession(session, func(s *Session) { s.Doubt = nil })
}
