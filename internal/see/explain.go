// Package see gathers facts about an inbox once, and derives its troubles from one table, for all that inform a person.
package see

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/machine"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
	recovery "heartbeat/recover"
)

// State is why nothing moves, in a word for programs.
type State string

// The states. Those before Answering are faults that a person must repair.
const (
	Unreadable  State = "unreadable"           // the inbox's state is not valid, or may not be read
	Unwritable  State = "unwritable"           // this user cannot write to the directory
	Full        State = "disk full"            // no space is left
	Locked      State = "locked"               // a process holds the lock and does not give it back
	Answering   State = "answering"            // an entry is in flight, its session at work as far as is known
	Checking    State = "checking"             // the check of the entry in flight runs
	Unchecked   State = "unchecked"            // that check could not be run, and is tried again
	Waking      State = "waking"               // an idle session is being woken with an entry
	Person      State = "waiting for a person" // a session asked for somebody, and an entry waits behind the question
	Failed      State = "failed"               // the turn of the entry in flight ended in an error
	Orphaned    State = "orphaned"             // the session of the entry in flight is gone
	Paused      State = "paused"               // nothing is delivered until somebody resumes, or the pause ends
	BackingOff  State = "backing off"          // nothing is delivered for a while, because turns ended in errors
	Replaced    State = "replaced"             // the inbox is another file, and will be read from its start
	Torn        State = "torn"                 // only a line without its newline waits
	Scheduled   State = "scheduled"            // only entries wait whose time has not come
	Held        State = "held"                 // only a run waits, for a person's answer
	Stuck       State = "run stuck"            // nothing waits, and a run can take no step
	RunAtWork   State = "run at work"          // only a run waits, for what it asked for or its next step
	RunAsleep   State = "run asleep"           // only a run waits, until a known time
	Empty       State = "empty"                // nothing waits
	NoSession   State = "no session"           // entries wait, and nobody comes for them
	SessionBusy State = "session busy"         // entries wait, and the session has not asked for them
	SessionDown State = "session stuck"        // entries wait, and the session met an error
	Launching   State = "launching"            // entries wait, and a launcher sees to a session
	NoWaker     State = "waker gone"           // entries wait, and the process that was to wake the session is gone or stopped
	NoInbox     State = "no inbox"             // the queue file is missing
	Stalled     State = "stalled"              // something should move, and nothing has for a while
)

// IsUnattended reports whether work waits or is in flight, and no session will go on with it by itself.
func (s State) IsUnattended() bool {
	return slices.Contains([]State{Orphaned, Failed, NoSession, SessionDown, NoWaker}, s)
}

const stillAfter = 10 * time.Minute // how long nothing may move before the state becomes [Stalled]

// Explain says why nothing moves, or what is being waited for.
func (f Facts) Explain() (state State, sentence string) {
	for _, explain := range []func() (State, string){f.broken, f.flying, f.held, f.asking, f.backingOff, f.nothing, f.unasked} {
		if state, sentence = explain(); state != "" {
			break
		}
	}
	if UrgencyOf(state) == "" && f.Still.Since.Before(f.Now.Add(-stillAfter)) && !f.Still.Since.IsZero() {
		state, sentence = Stalled, "nothing has moved for "+words.Took(f.Now.Sub(f.Still.Since).Truncate(time.Second))+": "+sentence
	}
	return state, words.Line(sentence)
}

// broken explains a fault that no session can repair.
func (f Facts) broken() (State, string) {
	work := f.InFlight != nil || f.Redeliver != nil || f.Backlog.Entries > 0 || f.Scheduled.Count > 0
	switch {
	case errors.Is(f.Unreadable, fs.ErrPermission):
		return Unreadable, fmt.Sprintf("the state cannot be read by this user: %v: look at it as the user that owns it", f.Unreadable)
	case f.Unreadable != nil:
		return Unreadable, fmt.Sprintf("the state cannot be read: %v", f.Unreadable)
	case f.Unwritable != nil:
		return Unwritable, fmt.Sprintf("this user cannot change anything in %s (%v): make it writable, or run the session as the user that owns it", f.Dir, f.Unwritable)
	case work && f.Full():
		left := "no space or no inode left"
		if f.Space > 0 {
			left = words.Size(f.Space) + " left"
		}
		return Full, fmt.Sprintf("the file system of %s is full (%s): free some space or inodes, and the next turn goes on", f.Dir, left)
	case f.LockedBy != 0:
		return Locked, fmt.Sprintf("%s has held the lock of the inbox for more than %s: everything waits until it goes on or ends", process(f.LockedBy, f.LockedName), f.LockedFor)
	}
	return "", ""
}

// held explains what keeps the next entry from being delivered.
func (f Facts) held() (State, string) {
	if f.Paused == nil {
		return "", ""
	}
	return Paused, fmt.Sprintf("delivery is %s: nothing is delivered until %s", f.Paused.String(), f.Paused.Ends())
}

// nothing explains an inbox in which no whole entry waits.
func (f Facts) nothing() (State, string) {
	due, overdue := f.Scheduled.Next, f.overdue() != ""
	switch {
	case f.Redeliver != nil:
		return "", ""
	case f.Backlog.Torn && f.Backlog.Entries == 1:
		sees := "the next Stop"
		if f.idle() != "" {
			sees = "the hook in the background"
		}
		sentence := fmt.Sprintf("the last line has no newline, and was written %s: it is an entry once %s has seen it stand still, or its writer ends it", f.ago(f.WrittenAt), sees)
		if overdue {
			sentence += "; what is scheduled and due waits for that"
		}
		return Torn, sentence
	case f.Backlog.Entries > 0:
		return "", ""
	case overdue:
		return Scheduled, f.overdue()
	case f.Scheduled.Count == 1:
		return Scheduled, fmt.Sprintf("nothing is queued: a scheduled entry comes at %s", words.Stamp(due)) + f.idle()
	case f.Scheduled.Count > 1:
		return Scheduled, fmt.Sprintf("nothing is queued: the first of %d scheduled entries comes at %s", f.Scheduled.Count, words.Stamp(due)) + f.idle()
	case len(f.Runs) > 0:
		r := f.Runs[0]
		sentence := "nothing is queued: " + r.Stands(f.Inbox)
		if more := len(f.Runs) - 1; more > 0 && runStates[r.State] != Stuck { // that sentence is long enough
			sentence += fmt.Sprintf("; %d more: see heartbeat run status", more)
		}
		return runStates[r.State], sentence + f.idle()
	case !f.Exists && f.Cursor > 0:
		return NoInbox, fmt.Sprintf("%s is gone, %s of it were settled: the next entry creates it again", f.Inbox, words.Size(f.Cursor)) + f.idle()
	case !f.Exists:
		return NoInbox, fmt.Sprintf("%s is not there yet: the first entry creates it", f.Inbox) + f.idle()
	}
	sentence := "empty: nothing is queued"
	if f.Asked != nil {
		sentence += ", and the last entry was answered at " + words.Stamp(*f.Asked)
	}
	if f.Replaced != "" {
		sentence += "; " + f.anew()
	}
	for _, t := range slices.Concat(f.replaced(), f.letters()) {
		sentence += "; " + t.Text
	}
	return Empty, sentence + f.idle()
}

// cut puts a foreign text on one line that is long enough for a command's message about its failure.
func cut(s string) string {
	const most = 400
	s = words.Sentence(s)
	if len(s) > most {
		s = s[:words.WholeRunes([]byte(s[:most]))] + " ..."
	}
	return s
}

// runStates has what it is called if only a run waits.
var runStates = map[orchestrate.WaitState]State{
	orchestrate.Stuck: Stuck, orchestrate.Left: Stuck, orchestrate.Asking: Held, orchestrate.Resting: Held, orchestrate.AtWork: RunAtWork, orchestrate.Asleep: RunAsleep,
}

// Stands returns a sentence about what a run waits for, since when, or where it is stuck.
func (r Run) Stands(inbox string) string {
	since := ""
	if !r.Since.IsZero() {
		since = " since " + words.Stamp(r.Since)
	}
	name := "the run " + r.Run
	switch r.State {
	case orchestrate.Asleep:
		return fmt.Sprintf("%s has been asleep%s, and goes on at %s", name, since, words.Stamp(*r.Until))
	case orchestrate.AtWork:
		return fmt.Sprintf("%s has been at work%s: %s", name, since, r.Text)
	case orchestrate.Left:
		return fmt.Sprintf("%s needs a person%s: %s", name, since, cut(r.Text))
	case orchestrate.Resting:
		return fmt.Sprintf("%s rests%s: %s: look at it, and `%s` has it go on", name, since, r.Text, Command(inbox, "run accept-code", r.Run))
	case orchestrate.Asking:
		return fmt.Sprintf("%s waits%s for a person to answer %q: `%s` (or reject)", name, since, words.Brief(r.Text), Command(inbox, "breakpoint approve", r.Effect))
	}
	return fmt.Sprintf("%s is stuck%s: %s: mend that, and the next Stop, or `%s`, goes on with it", name, since, cut(r.Text), Command(inbox, "run resume", r.Dir))
}

// GoOn returns sentences about the runs that need nobody, but for what why says.
func GoOn(all []Run, inbox, why string) (sentences []string) {
	for _, r := range all {
		if text := words.Line(r.Stands(inbox)); !r.NeedsPerson() && !strings.Contains(why, text) {
			sentences = append(sentences, text)
		}
	}
	return sentences
}

// overdue returns a sentence if a scheduled entry should be in the queue by now, else "".
func (f Facts) overdue() string {
	due := f.Scheduled.Next
	if due.IsZero() || due.After(f.Now) {
		return ""
	}
	return fmt.Sprintf("a scheduled entry has been due since %s, and is not in the inbox yet: each Stop and `heartbeat status` move it, or say what prevents that", words.Stamp(due))
}

func (f Facts) anew() string {
	return fmt.Sprintf("the inbox was truncated or replaced (%s), and is read from its start", f.Replaced)
}

// unasked explains entries that wait for a session to ask.
func (f Facts) unasked() (State, string) {
	state, sentence := f.awaited(f.waits())
	if g := f.GaveUp; g != nil && state == NoSession && f.first(func(s *Session) bool { return f.heard(s).After(g.At) }) == nil {
		sentence += fmt.Sprintf("; the last launcher gave up at %s: %s", words.Stamp(g.At), g.Text)
	}
	if overdue := f.overdue(); overdue != "" {
		sentence += "; " + overdue
	}
	if f.Replaced != "" {
		return Replaced, f.anew() + ": " + sentence
	}
	return state, sentence
}

func (f Facts) waits() string {
	d := f.Redeliver
	if d == nil {
		return words.Count(int(f.Backlog.Entries), "entry waits", "entries wait")
	}
	more := ""
	if behind := f.Backlog.Entries - 1; behind > 0 {
		more = fmt.Sprintf(", %d more behind it", behind)
	}
	return fmt.Sprintf("the entry %s waits to be delivered again (attempt %d%s)", words.Name(d.ID(), d.EntryID), d.Attempt+1, more)
}

func (f Facts) hasEntry() bool {
	return f.Redeliver != nil || f.Backlog.Entries > 1 || f.Backlog.Entries == 1 && !f.Backlog.Torn
}

// awaited explains which session is expected, and what it is doing.
func (f Facts) awaited(waits string) (State, string) {
	if w := f.waker(); w != nil {
		return f.waking(w, waits)
	}
	s := f.Current()
	if l := f.Launcher; l != nil && (s == nil || !s.isRunning() || f.wakerGone(s)) {
		return Launching, waits + ", and " + l.sees()
	}
	switch {
	case s != nil && s.Failure != nil && s.Failure.Error == recovery.CannotWake && f.heard(s).Before(s.Failure.At):
		return SessionDown, fmt.Sprintf("%s, and session %s could not be woken at %s, since it ends with its turn (under -p, or driven by a program): start an interactive one, or wire the hook without --rewake", waits, words.Short(s.ID), words.Stamp(s.Failure.At))
	case f.wakerGone(s):
		return NoWaker, fmt.Sprintf("%s, and the process that was to wake %s (process %d) is gone: the session asks after its next turn, if it still runs, so type something there, or start another", waits, sessionName(f.Waiter.SessionID), f.Waiter.PID)
	case s == nil && !f.EverAsked:
		return NoSession, waits + ", and no session has ever asked: start one, and see heartbeat doctor if it does not ask"
	case s == nil:
		return NoSession, waits + ", and no session is known: if one runs, its next Stop goes on, or else start one"
	}
	last := fmt.Sprintf("%s, and no session runs: start one; the last one, %s,", waits, words.Short(s.ID))
	switch {
	case s.EndedAt != nil:
		return NoSession, fmt.Sprintf("%s ended at %s", last, words.Stamp(*s.EndedAt))
	case s.Life == machine.Rebooted:
		return NoSession, last + " ended when the machine went down"
	case s.Life == machine.Gone:
		return NoSession, fmt.Sprintf("%s is gone (process %d has ended)", last, s.PID)
	case s.Failure != nil && f.heard(s).Before(s.Failure.At):
		return SessionDown, fmt.Sprintf("%s, and session %s met an error at %s (%s): it waits at its prompt, and asks after its next turn", waits, words.Short(s.ID), words.Stamp(s.Failure.At), s.Failure)
	case s.Life == machine.Alive:
		return SessionBusy, fmt.Sprintf("%s for the next Stop of session %s (process %d), last heard of at %s: %s", waits, words.Short(s.ID), s.PID, words.Stamp(f.heard(s)),
			cmp.Or(f.Launcher.retries(), "it is at work on something else, or waits at its prompt"))
	}
	return SessionBusy, fmt.Sprintf("%s for the next Stop of session %s, last heard of at %s: whether it still runs is not known", waits, words.Short(s.ID), words.Stamp(f.heard(s)))
}

// sees returns what the launcher does for the next session, so that a person does not start one.
func (l *Launcher) sees() string {
	sentence := "the launcher, " + process(l.PID, "") + ", sees to the next session"
	if l.Doing != "" {
		sentence += ": " + l.Doing
	}
	return sentence
}

// Retries stands in a launcher's sign between its session and the error of the model's API that the session retries.
const Retries = ", which retries: "

// retries returns what the launcher's session retries, "" for nothing.
func (l *Launcher) retries() (what string) {
	if l != nil {
		_, what, _ = strings.Cut(l.Doing, Retries)
	}
	return what
}

// heard returns when a session was last active.
func (f Facts) heard(s *Session) (last time.Time) {
	for _, at := range []*time.Time{s.StartedAt, s.PromptedAt, f.Asked} {
		if at != nil && at.After(last) {
			last = *at
		}
	}
	return last
}

func (f Facts) ago(t time.Time) string {
	if t.After(f.Now.Add(time.Second)) {
		return words.Stamp(t) + " (in the future: the clock was set back)"
	}
	return fmt.Sprintf("%s (%s ago)", words.Stamp(t), words.Took(f.Now.Sub(t).Truncate(time.Second)))
}

func process(pid int, name string) string {
	switch {
	case pid < 0:
		return "a process that cannot be named"
	case name == "":
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d (%s)", pid, name)
}
