package inbox

import (
	"bytes"
	"slices"
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
	overMember      = []byte(`"over_limit":`)
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
	all, err := t.sessions()
	if i := slices.IndexFunc(all, func(s Session) bool { return s.ID == id }); err == nil && i >= 0 {
		return &all[i]
	}
	return nil
}

// oneLine is an error's text as a finding keeps it.
func oneLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.ToValidUTF8(text[:min(len(text), maxFinding)], "")
}

// NoteOver records that a session is given nothing more, since it has reached its limit, with
// the figures; no figures, that it has not.
func (t *Tx) NoteOver(session, figures string) error {
	s := t.sessionWith(overMember, session)
	switch {
	case figures == "" && (s == nil || s.Over == nil):
		return nil
	case figures != "" && s != nil && s.Over != nil:
		return nil // it goes on to spend
	case figures != "":
		t.person = true
		if err := t.addEvent(Event{Event: EventSessionOver, Session: session, Reason: oneLine(figures)}); err != nil {
			return err
		}
	}
	return t.changeSession(session, func(s *Session) { s.Over = t.found(oneLine(figures)) })
}
