package inbox

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// Finding is what was found about a session, since when, until it is found otherwise.
type Finding struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"` // in words, on one line
}

// maxFinding bounds the text of one: each record has it.
const maxFinding = 500

// These are in the encoded sessions if one of them has such a finding.
var (
	uncountedMember = []byte(`"uncounted":`)
)

// NoteUncounted records why what a session spends is not counted while it is held against
// limits; an empty cause, that it is. The same cause again changes nothing.
func (t *Tx) NoteUncounted(session, cause string) error {
	cause = oneLine(cause)
	if t.Uncounted(session) == cause {
		return nil
	}
	if cause != "" {
		t.person = true
		if err := t.addEvent(Event{Event: EventUncounted, Session: session, Reason: cause}); err != nil {
			return err
		}
	}
	return t.changeSession(session, func(s *Session) { s.Uncounted = t.found(cause) })
}

// Uncounted is the cause that [Tx.NoteUncounted] recorded, empty for none.
func (t *Tx) Uncounted(session string) string {
	if s := t.sessionWith(uncountedMember, session); s != nil {
		return s.Uncounted.text()
	}
	return ""
}

// Uncounted is [Tx.Uncounted].
func (v *View) Uncounted(session string) string { return v.tx.Uncounted(session) }

// SameFinding reports whether two texts are one, as they are recorded.
func SameFinding(a, b string) bool { return oneLine(a) == oneLine(b) }

func (t *Tx) found(text string) *Finding {
	if text == "" {
		return nil
	}
	return &Finding{At: t.box.utcNow(), Text: text}
}

func (f *Finding) text() string {
	if f == nil {
		return ""
	}
	return f.Text
}

// sessionWith is a session, if any has that member: the usual case is that none has, and
// is asked for at every turn.
func (t *Tx) sessionWith(member []byte, id string) *Session {
	if !bytes.Contains(t.st.Sessions, member) {
		return nil
	}
	s, err := t.Session(id)
	if err != nil {
		return nil
	}
	return &s
}

// oneLine is an error's text as a finding keeps it.
func oneLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.ToValidUTF8(text[:min(len(text), maxFinding)], "")
}

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
