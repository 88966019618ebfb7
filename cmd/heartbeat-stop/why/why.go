package why

import (
	"fmt"
	"time"

	"heartbeat/inbox"
)

// State is a word for the sentence, for programs.
type State string

// The states. Those before Answering are faults that somebody must mend.
const (
	Unreadable  State = "unreadable"    // the state of the inbox is not valid, or may not be read
	Unwritable  State = "unwritable"    // this user cannot write to the directory
	Full        State = "disk full"     // no space is left
	Locked      State = "locked"        // a process holds the lock and does not give it back
	Answering   State = "answering"     // an entry is in flight, its session at work as far as is known
	Failed      State = "failed"        // the turn of the entry in flight ended in an error
	Orphaned    State = "orphaned"      // the session of the entry in flight is gone
	Paused      State = "paused"        //
	Replaced    State = "replaced"      // the inbox is another file, and will be read from its start
	Torn        State = "torn"          // all that waits is a line without its newline
	Scheduled   State = "scheduled"     // nothing waits but for its time
	Empty       State = "empty"         //
	NoSession   State = "no session"    // entries wait, and nobody comes for them
	SessionBusy State = "session busy"  // entries wait, and the session has not asked for them
	SessionDown State = "session stuck" // entries wait, and the session met an error
	NoInbox     State = "no inbox"      // the queue file is missing
)

// Explain says why nothing moves. Where things do move, it says what is being
// waited for.
func (f Facts) Explain() (State, string) {
	for _, explain := range []func() (State, string){f.broken, f.flying, f.held, f.nothing, f.unasked} {
		if state, sentence := explain(); state != "" {
			return state, sentence
		}
	}
	return Empty, "empty: nothing is queued"
}

// broken is about what no session can mend.
func (f Facts) broken() (State, string) {
	work := f.InFlight != nil || f.Redeliver != nil || f.Backlog.Entries > 0 || len(f.Scheduled) > 0
	switch {
	case f.Unreadable != nil:
		return Unreadable, fmt.Sprintf("the state cannot be read: %v", f.Unreadable)
	case f.Unwritable != nil:
		return Unwritable, fmt.Sprintf("this user cannot change anything in %s (%v): run the session and heartbeat as the user that owns it", f.Dir, f.Unwritable)
	case work && f.Space >= 0 && f.Space < minSpace:
		return Full, fmt.Sprintf("the file system of %s is full (%d bytes left): free some space, and the next turn goes on", f.Dir, f.Space)
	case f.LockedBy != 0:
		return Locked, fmt.Sprintf("%s holds the lock of the inbox and does not give it back: everything waits for it to go on or to end", process(f.LockedBy, f.LockedName))
	}
	return "", ""
}

// minSpace is less than one commit may need.
const minSpace = 64 << 10

// flying is about the entry in flight.
func (f Facts) flying() (State, string) {
	d := f.InFlight
	if d == nil {
		return "", ""
	}
	entry := fmt.Sprintf("the entry %s", Name(d.ID(), d.EntryID))
	state, how := f.fate(d)
	if state == Answering {
		how = fmt.Sprintf("waiting for an answer to %s since %s, attempt %d%s", entry, f.ago(d.DeliveredAt), d.Attempt, how)
	} else {
		how = entry + " " + how
	}
	if d.Detached {
		how += "; the inbox was replaced since"
	}
	if f.Paused != nil {
		how += "; delivery is " + Pause(*f.Paused)
	}
	return state, how
}

// fate is how it stands with the session that the entry was delivered to.
func (f Facts) fate(d *inbox.Delivery) (State, string) {
	const decides = ": its next session, or heartbeat-stop recover, decides about it"
	s := f.session(d.SessionID)
	life, name := f.Client, "its session"
	if d.SessionID != "" {
		name = "session " + short(d.SessionID)
	}
	if s != nil && s.Life != Unknown {
		life = s.Life
	}
	switch {
	case s != nil && s.EndedAt != nil && s.EndedAt.After(d.DeliveredAt):
		return Orphaned, fmt.Sprintf("was in flight when %s ended at %s%s", name, Stamp(*s.EndedAt), decides)
	case life == Rebooted:
		return Orphaned, fmt.Sprintf("was in flight when the machine went down, with %s%s", name, decides)
	case life == Gone:
		return Orphaned, fmt.Sprintf("was in flight when %s died%s", name, decides)
	case d.Failure != nil:
		return Failed, fmt.Sprintf("is in flight, and its turn ended in an error at %s (%s): %s waits at its prompt, and its next turn decides about the entry", Stamp(d.Failure.At), d.Failure, name)
	case s != nil && s.StartedAt != nil && s.StartedAt.After(d.DeliveredAt):
		return Orphaned, fmt.Sprintf("was in flight when %s ended without a word; it was resumed at %s, and its next Stop decides about the entry", name, Stamp(*s.StartedAt))
	}
	if d.SessionID == "" {
		return Answering, ""
	}
	return Answering, ", " + name
}

// held is about what keeps anybody from being given the next entry.
func (f Facts) held() (State, string) {
	switch {
	case f.Paused != nil && f.Paused.Until != nil:
		return Paused, Pause(*f.Paused) + ": then, or with heartbeat-stop resume, it goes on"
	case f.Paused != nil:
		return Paused, Pause(*f.Paused) + ": heartbeat-stop resume goes on"
	case f.Replaced != "":
		return Replaced, fmt.Sprintf("the inbox was truncated or replaced (%s): the next Stop reads it from its start", f.Replaced)
	}
	return "", ""
}

// nothing is about an inbox in which no whole entry waits.
func (f Facts) nothing() (State, string) {
	due := f.NextDue()
	overdue := !due.IsZero() && !due.After(f.Now)
	switch {
	case f.Redeliver != nil:
		return "", ""
	case f.Backlog.Torn && f.Backlog.Entries == 1:
		sentence := fmt.Sprintf("the last line has no newline, and was written %s: it is an entry once the next Stop has seen it stand still, or its writer ends it", f.ago(f.WrittenAt))
		if overdue {
			sentence += "; what is scheduled and due waits for that"
		}
		return Torn, sentence
	case f.Backlog.Entries > 0:
		return "", ""
	case overdue:
		return Scheduled, fmt.Sprintf("a scheduled entry is due since %s, and could not be moved to the inbox", Stamp(due))
	case len(f.Scheduled) > 0:
		return Scheduled, fmt.Sprintf("nothing is due: the next of %s comes at %s", count(len(f.Scheduled), "scheduled entry", "scheduled entries"), Stamp(due))
	case !f.Exists && f.Cursor > 0:
		return NoInbox, fmt.Sprintf("%s is gone, of which %d bytes were settled: the next entry makes it anew", f.Inbox, f.Cursor)
	case !f.Exists:
		return NoInbox, fmt.Sprintf("%s is not there yet: the first entry makes it", f.Inbox)
	}
	return Empty, "empty: nothing is queued"
}

// unasked is about entries that wait for somebody to come.
func (f Facts) unasked() (State, string) {
	waits := count(int(f.Backlog.Entries), "entry waits", "entries wait")
	if d := f.Redeliver; d != nil {
		waits = fmt.Sprintf("the entry %s waits to be delivered again (attempt %d)", Name(d.ID(), d.EntryID), d.Attempt+1)
	}
	s := f.Current()
	switch {
	case s == nil && !f.EverAsked:
		return NoSession, waits + ", and no session has ever asked: start one, and see heartbeat-stop doctor if it does not ask"
	case s == nil:
		return NoSession, waits + ", and no session is known to run: start one"
	case s.EndedAt != nil:
		return NoSession, fmt.Sprintf("%s, and no session runs: the last one, %s, ended at %s", waits, short(s.ID), Stamp(*s.EndedAt))
	case s.Life == Rebooted:
		return NoSession, fmt.Sprintf("%s, and no session runs: the last one, %s, ended when the machine went down", waits, short(s.ID))
	case s.Life == Gone:
		return NoSession, fmt.Sprintf("%s, and no session runs: the last one, %s, died (process %d is gone)", waits, short(s.ID), s.PID)
	case s.Failure != nil && f.since(s).Before(s.Failure.At):
		return SessionDown, fmt.Sprintf("%s, and session %s met an error at %s (%s): it waits at its prompt, and asks after its next turn", waits, short(s.ID), Stamp(s.Failure.At), s.Failure)
	case s.Life == Alive:
		return SessionBusy, fmt.Sprintf("%s, and session %s (process %d) has not asked since %s: it is at work on something else, or waits at its prompt", waits, short(s.ID), s.PID, Stamp(f.since(s)))
	}
	return SessionBusy, fmt.Sprintf("%s, and session %s has not asked since %s: whether it still runs is not known", waits, short(s.ID), Stamp(f.since(s)))
}

// since is when a session last showed that it works on the inbox.
func (f Facts) since(s *Session) time.Time {
	var at time.Time
	if s.StartedAt != nil {
		at = *s.StartedAt
	}
	if f.Asked != nil && f.Asked.After(at) {
		at = *f.Asked
	}
	return at
}
