package see

import (
	"fmt"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// waker returns the process that waits in the background to wake its session, unless it is known to have ended.
func (f Facts) waker() *Waiter {
	w := f.Waiter
	if w == nil || w.Life == machine.Gone || w.Life == machine.Rebooted {
		return nil
	}
	if s := f.session(w.SessionID); s != nil && s.EndedAt != nil {
		return nil
	}
	return w
}

// idle returns which session the next entry is sure to wake, or "".
func (f Facts) idle() string {
	w := f.waker()
	if w == nil || w.Life != machine.Alive {
		return ""
	}
	if w.Stopped {
		return "; " + w.stopped()
	}
	return "; " + sessionName(w.SessionID) + " is idle, and the next entry wakes it"
}

func (w *Waiter) stopped() string {
	return fmt.Sprintf("process %d, which is to wake %s, is stopped, by SIGSTOP or Ctrl-Z: kill -CONT %d has it go on", w.PID, sessionName(w.SessionID), w.PID)
}

// waking explains entries for which a process in the background waits.
func (f Facts) waking(w *Waiter, waits string) (State, string) {
	name := sessionName(w.SessionID)
	if s := f.session(w.SessionID); s != nil && s.Failure != nil && s.Failure.Error == recovery.HookError && s.Failure.At.After(w.Since) {
		return SessionDown, fmt.Sprintf("%s, and process %d, which is to wake %s, met an error at %s (%s): it tries again, within a minute once that is mended", waits, w.PID, name, words.Stamp(s.Failure.At), s.Failure.Message)
	}
	if w.Stopped {
		return NoWaker, waits + ", and " + w.stopped()
	}
	if w.Life == machine.Alive {
		return Waking, fmt.Sprintf("%s, and %s takes what is next within moments: process %d waits in the background to wake it", waits, name, w.PID)
	}
	return SessionBusy, fmt.Sprintf("%s for process %d, which waited in the background to wake %s: whether it still runs is not known", waits, w.PID, name)
}

// wakerGone reports whether the next session stays idle because the process that should wake it died.
func (f Facts) wakerGone(current *Session) bool {
	if f.Waiter == nil || f.Waiter.Life != machine.Gone {
		return false
	}
	return current == nil || current.ID == f.Waiter.SessionID && current.isRunning()
}

func (s *Session) isRunning() bool {
	return s.EndedAt == nil && s.Life != machine.Gone && s.Life != machine.Rebooted
}

func sessionName(id string) string {
	if id == "" {
		return "its session"
	}
	return "session " + words.Short(id)
}

// Asking returns a session that waits for a person, or nil.
func (f Facts) Asking() *Session {
	return f.first(func(s *Session) bool { return s.IsAsking() })
}

// Answerable reports whether somebody can attach to the session that asks and answer it.
func (f Facts) Answerable() bool {
	return f.Launcher != nil && f.Launcher.Socket != "" && f.Launcher.Waits
}

// IsAsking reports whether the session runs and waits for a person.
func (s *Session) IsAsking() bool { return s.Asks != nil && s.isRunning() }

// asked describes the question of a session. An answer shows only at the end of the turn.
func asked(s *Session) string {
	return fmt.Sprintf("session %s waits for a person: %s (since %s, and no turn of it has ended since)", words.Short(s.ID), s.Asks, words.Stamp(s.Asks.At))
}

// asking explains entries that wait while the session, which cannot be woken, asks a person about other work.
func (f Facts) asking() (State, string) {
	s := f.Current()
	if s == nil || !s.IsAsking() || !f.hasEntry() || f.waker() != nil {
		return "", ""
	}
	sentence := fmt.Sprintf("%s: unless somebody has answered, %s behind that", asked(s), f.waits())
	if f.Backoff != nil {
		sentence += "; delivery is " + f.Backoff.String()
	}
	return Person, sentence
}

func (f Facts) backingOff() (State, string) {
	b := f.Backoff
	if b == nil {
		return "", ""
	}
	sentence := b.String()
	if b.Named {
		sentence += ", just after the time that the error named"
	}
	if b.Streak > 1 { // the streak counts entries; turns without one may have failed besides
		sentence += fmt.Sprintf(", after %d failures in a row", b.Streak)
	}
	if !f.hasEntry() {
		return BackingOff, sentence + ": an entry that comes waits until " + inbox.BackoffEnds
	}
	_, then := f.unasked()
	return BackingOff, sentence + ": nothing is delivered until " + inbox.BackoffEnds + "; after that, " + then
}

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
	life, name := f.Client, sessionName(d.SessionID)
	if s != nil && s.Life != machine.Unknown && (!f.Woken || f.Client == machine.Unknown) {
		life = s.Life // unless the entry wakes a session and names its process
	}
	if sentence := f.lost(d, s, life, entry, name); sentence != "" {
		return Orphaned, sentence
	}
	switch {
	case s != nil && s.IsAsking():
		return Person, fmt.Sprintf("%s: unless somebody has answered, %s, in flight since %s, waits behind that", asked(s), entry, f.ago(d.DeliveredAt))
	case f.Woken && !f.Bound: // not taken up yet
		if s != nil && s.EndedAt != nil {
			name = "the client of " + name // the client continues with another session
		}
		return Waking, fmt.Sprintf("waiting for %s to take up %s, handed over at %s to wake it, attempt %d: if it never does, the session's next turn or end decides about the entry", name, entry, f.ago(d.DeliveredAt), d.Attempt)
	case d.Failure != nil:
		return Failed, fmt.Sprintf("%s is in flight, and its turn ended in an error at %s (%s): %s waits at its prompt, and its next turn decides about the entry", entry, words.Stamp(d.Failure.At), d.Failure, name)
	case f.Interrupted:
		return Answering, fmt.Sprintf("%s is in flight, and a person interrupted its turn: the end of the next turn of %s, or of the session, decides about the entry", entry, name)
	}
	if state, sentence := f.checks(d, entry); sentence != "" {
		return state, sentence
	}
	known := name + " runs"
	if life == machine.Unknown {
		known = "whether " + name + " runs is not known"
	} else if what := f.Launcher.retries(); what != "" {
		known += ", and retries: " + what
	}
	return Answering, fmt.Sprintf("waiting for an answer to %s since %s, attempt %d: %s", entry, f.ago(d.DeliveredAt), d.Attempt, known)
}

// checks explains how far the entry's check is, once its turn has ended.
func (f Facts) checks(d *inbox.Delivery, entry string) (State, string) {
	c := d.Check
	if c == nil || c.Since == nil {
		return "", ""
	}
	name := "the check of " + entry
	switch {
	case c.Status == inbox.CheckUnable:
		return Unchecked, fmt.Sprintf("%s cannot be checked: %s, since %s; it stays in flight, and the check is tried again, for half an hour", entry, words.Line(c.Why), f.ago(*c.Since))
	case c.Running():
		return Checking, fmt.Sprintf("%s has run since %s, try %d", name, f.ago(*c.Since), c.Tries+1)
	case c.Status == inbox.CheckFailed:
		return Answering, fmt.Sprintf("%s failed at %s, try %d (%s): its session goes on with what it printed", name, f.ago(*c.Since), c.Tries, words.Line(c.Why))
	}
	return "", ""
}

// lost returns how the entry in flight lost its session, or "".
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
