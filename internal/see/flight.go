package see

import (
	"fmt"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
)

// flying explains an entry in flight.
func (f Facts) flying() (State, string) {
	d := f.InFlight
	if d == nil {
		return "", ""
	}
	state, sentence := f.fate(d, "the entry "+words.Name(d.ID(), d.EntryID))
	if d.Detached {
		sentence += "; the inbox was replaced since"
	}
	switch {
	case f.Paused != nil:
		sentence += "; delivery is " + f.Paused.String()
	case f.Backoff != nil:
		sentence += "; delivery is " + f.Backoff.String()
	}
	return state, sentence
}

// fate explains what the session does with the entry it got.
func (f Facts) fate(d *inbox.Delivery, entry string) (State, string) {
	s := f.session(d.SessionID)
	life, name := f.lifeOf(s), sessionName(d.SessionID)
	if sentence := f.lost(d, s, life, entry, name); sentence != "" {
		return Orphaned, sentence
	}
	switch {
	case s != nil && s.asks():
		return Person, fmt.Sprintf("%s: unless somebody has answered, %s, in flight since %s, waits behind that", asked(s), entry, f.ago(d.DeliveredAt))
	case f.unbound():
		if s != nil && s.EndedAt != nil {
			name = "the client of " + name // the client continues with another session
		}
		return Waking, fmt.Sprintf("waiting for %s to take up %s, handed over at %s to wake it, attempt %d: if it never does, the entry is handed over again after its next turn", name, entry, f.ago(d.DeliveredAt), d.Attempt)
	case d.Failure != nil:
		return Failed, fmt.Sprintf("%s is in flight, and its turn ended in an error at %s (%s): %s waits at its prompt, and its next turn decides about the entry", entry, words.Stamp(d.Failure.At), d.Failure, name)
	}
	if state, sentence := f.checks(d, entry); sentence != "" {
		return state, sentence
	}
	known := name + " runs"
	if life == machine.Unknown {
		known = "whether " + name + " runs is not known"
	}
	return Answering, fmt.Sprintf("waiting for an answer to %s since %s, attempt %d: %s", entry, f.ago(d.DeliveredAt), d.Attempt, known)
}

// checks says how far the entry's check is, nothing before the turn ends.
func (f Facts) checks(d *inbox.Delivery, entry string) (State, string) {
	c := d.Check
	if c == nil || c.Since == nil {
		return "", ""
	}
	name := "the check of " + entry
	switch {
	case c.Status == inbox.CheckUnable:
		return Unchecked, fmt.Sprintf("%s cannot be checked: %s, since %s; it stays in flight, and the check is tried again until it runs", entry, words.Line(c.Why), f.ago(*c.Since))
	case c.Running():
		return Checking, fmt.Sprintf("%s runs since %s, try %d", name, f.ago(*c.Since), c.Tries+1)
	case c.Status == inbox.CheckFailed:
		return Answering, fmt.Sprintf("%s failed at %s, try %d (%s): its session goes on with what it printed", name, f.ago(*c.Since), c.Tries, words.Line(c.Why))
	}
	return "", ""
}

// lost says how the entry in flight lost its session, or nothing.
func (f Facts) lost(d *inbox.Delivery, s *Session, life machine.Life, entry, name string) string {
	decides := "the next session's Stop, or heartbeat recover, decides about it"
	if f.Woken {
		decides = "the next session, or heartbeat recover, decides about it"
	}
	switch {
	case f.Client == machine.Alive: // the client may take the entry up in any session, and nobody else decides
	case s != nil && s.EndedAt != nil && s.EndedAt.After(d.DeliveredAt):
		return fmt.Sprintf("%s was in flight when %s ended at %s: %s", entry, name, words.Stamp(*s.EndedAt), decides)
	case life == machine.Rebooted:
		return fmt.Sprintf("%s, delivered at %s, was in flight when the machine went down, with %s: %s", entry, words.Stamp(d.DeliveredAt), name, decides)
	case life == machine.Gone:
		return fmt.Sprintf("%s, delivered at %s, was in flight when %s died: %s", entry, words.Stamp(d.DeliveredAt), name, decides)
	case s != nil && s.StartedAt != nil && s.StartedAt.After(d.DeliveredAt) && !f.Prompted:
		return fmt.Sprintf("%s was in flight when %s ended without a word; it was resumed at %s, and its next Stop decides about the entry", entry, name, words.Stamp(*s.StartedAt))
	}
	return ""
}

// lifeOf tells whether the session that got the entry in flight lives. The process is asked if the entry wakes a
// session and names its process, otherwise the session.
func (f Facts) lifeOf(s *Session) machine.Life {
	if s != nil && s.Life != machine.Unknown && (!f.Woken || f.Client == machine.Unknown) {
		return s.Life
	}
	return f.Client
}

// unbound reports whether the entry in flight should wake its session and was not taken up yet.
func (f Facts) unbound() bool { return f.Woken && !f.Bound }
