package inbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/machine"
)

// maxSessions bounds the number of sessions that are remembered, latest first.
const maxSessions = 8

// Process identifies a process for good. Boot and Namespace say where PID is valid. ProcessStart, 0 if unknown,
// tells the process from a later one with the same PID: see package machine.
type Process struct {
	PID          int    `json:"pid,omitempty"`
	Boot         string `json:"boot,omitempty"`
	Namespace    string `json:"pid_namespace,omitempty"`
	ProcessStart int64  `json:"process_start,omitempty"`
}

// ProcessOf returns the process that has this id now. pid 0 is no process.
func ProcessOf(pid int) Process {
	return Process{PID: pid, Boot: machine.BootID(), Namespace: machine.PIDNamespace(), ProcessStart: machine.ProcessStart(pid)}
}

// Life reports whether the process runs. If its start is unknown, another process may have the id by now.
func (p Process) Life() machine.Life {
	here := !machine.OtherBoot(p.Boot) && (p.Namespace == "" || p.Namespace == machine.PIDNamespace())
	if p.PID != 0 && p.ProcessStart == 0 && here && machine.Ended(p.PID) {
		return machine.Gone
	}
	return machine.LifeOf(p.Boot, p.Namespace, p.PID, p.ProcessStart)
}

// Session is a consumer that reported its start, its end or an error.
type Session struct {
	ID string `json:"id"`
	Process

	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	Failure   *Failure   `json:"failure,omitempty"`
	// PromptedAt is when the session was last reported to have been prompted.
	PromptedAt *time.Time `json:"prompted_at,omitempty"`
	// Asks is the session's question for a person, until the session goes on.
	Asks *Question `json:"asks,omitempty"`
	// Uncounted is why the session's spending cannot be counted although limits apply.
	Uncounted *Finding `json:"uncounted,omitempty"`
	// Doubt is an entry that the session answered and that may still be contested.
	Doubt *Doubt `json:"doubt,omitempty"`

	// Blocks is the number of stops in a row that were blocked for entries, as [InSession.CountBlock] counted them.
	Blocks int `json:"blocks,omitempty"`

	// StartedSeq and FailedSeq are the numbers of the commits that noted the last start and the last failure
	// (see [Tx.Seq]), 0 if unknown.
	StartedSeq int64 `json:"started_seq,omitempty"`
	FailedSeq  int64 `json:"failed_seq,omitempty"`
	// StartNote is the consumer's own note on the last start.
	StartNote json.RawMessage `json:"start_note,omitempty"`
	// PromptedBoot and PromptedSinceBoot (nanoseconds) are PromptedAt by a clock that nobody can set: see
	// package machine.
	PromptedBoot      string `json:"prompted_boot,omitempty"`
	PromptedSinceBoot int64  `json:"prompted_since_boot_ns,omitempty"`
	// PromptID is the client's name for that prompt, if it has one.
	PromptID string `json:"prompt_id,omitempty"`
}

// Question is what a session needs a person for, and since when.
type Question struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // in the consumer's words
	Text string    `json:"text,omitempty"`
}

// Sessions returns the remembered sessions, the one that reported last first.
func (t *state) Sessions() ([]Session, error) {
	all, err := recorded[[]Session](t.st.Sessions, "sessions")
	if all == nil || err != nil {
		return nil, err
	}
	return *all, nil
}

// InSession is what is known of one session, and what it reports.
type InSession struct {
	tx *Tx
	id string
}

// In returns what is known of a session; changes are committed with the transaction.
func (t *state) In(session string) InSession { return InSession{t.tx, session} }

// Known returns what is known of the session, only its ID if nothing is. If the sessions cannot be decoded, no commit
// follows.
func (in InSession) Known() Session {
	all := in.tx.sessions()
	if i := sessionAt(all, in.id); i >= 0 {
		return all[i]
	}
	return Session{ID: in.id}
}

// sessions returns the remembered sessions. If they cannot be decoded, no commit follows, so that nothing is
// decided without them.
func (t *Tx) sessions() []Session {
	all, err := t.Sessions()
	if err != nil {
		t.failed, t.dirty = cmp.Or(t.failed, err), true
	}
	return all
}

// Acknowledged returns how many entries in a row the session has answered, with none by another session in between.
func (in InSession) Acknowledged() int {
	if in.tx.st.Session != in.id {
		return 0
	}
	return in.tx.st.Acknowledged
}

// CountBlock counts a stop of the session that is blocked for an entry. first means that the previous stop was not
// blocked.
func (in InSession) CountBlock(first bool) {
	in.change(func(s *Session) {
		if first {
			s.Blocks = 0
		}
		s.Blocks++
	})
}

// Start records that the session began or was resumed, in process pid (0 if unknown). note is the consumer's
// own, and opaque to this package.
func (in InSession) Start(pid int, note json.RawMessage) error {
	in.change(func(s *Session) {
		now := in.tx.box.utcNow()
		s.StartedAt, s.EndedAt, s.Asks = &now, nil, nil
		s.StartedSeq, s.StartNote = in.tx.Seq(), note
		s.Process = ProcessOf(pid)
	})
	in.tx.accountant.Arrive(in.id)
	in.ForgetStopped()
	in.tx.addEvent(Event{Event: EventStarted, Session: in.id})
	return in.tx.failed
}

// End records that the session ended.
func (in InSession) End() error {
	in.change(func(s *Session) {
		now := in.tx.box.utcNow()
		s.EndedAt, s.Asks = &now, nil
	})
	in.endLate()
	in.tx.addEvent(Event{Event: EventEnded, Session: in.id})
	return in.tx.failed
}

// Prompt records that the session was prompted. promptID is the client's name for the prompt, or "".
func (in InSession) Prompt(promptID string) error {
	in.change(func(s *Session) {
		s.PromptID = promptID
		now := in.tx.box.utcNow()
		s.PromptedAt, s.Asks = &now, nil
		s.PromptedBoot, s.PromptedSinceBoot = in.tx.boot, machine.SinceBoot()
	})
	return in.tx.failed
}

// Ask records that the session needs a person.
func (in InSession) Ask(kind, text string) error {
	q := &Question{At: in.tx.box.utcNow(), Kind: kind, Text: text}
	in.tx.person = true
	in.tx.addEvent(Event{Event: EventAsked, Session: in.id, Reason: q.String()})
	in.change(func(s *Session) { s.Asks = q })
	return in.tx.failed
}

// String returns the kind of question and its text.
func (q Question) String() string {
	if q.Text == "" {
		return q.Kind
	}
	return q.Kind + ": " + q.Text
}

// StopAsking records that the session continued, and so needs nobody.
func (in InSession) StopAsking() {
	if in.with(`"asks":`).Asks != nil {
		in.change(func(s *Session) { s.Asks = nil })
	}
}

// Fail records an error of the session. The session's entry in flight stays in flight, and keeps the error too.
func (in InSession) Fail(name, message string) error { return in.FailAt(time.Time{}, name, message) }

// FailAt is [InSession.Fail] for an error of an earlier time, now if that is zero.
func (in InSession) FailAt(at time.Time, name, message string) error {
	f := in.tx.failure(name, message)
	if !at.IsZero() {
		f.At = at.UTC()
	}
	e := Event{Event: EventFailed, Session: in.id}
	if in.tx.inFlight != nil && in.tx.inFlight.SessionID == in.id {
		d := *in.tx.inFlight
		d.Failure = f
		in.tx.setInFlight(&d)
		e = eventOf(&d, EventFailed)
	}
	return in.fail(f, e)
}

// FailAlone is [InSession.Fail] for an error that does not concern the entry in flight.
func (in InSession) FailAlone(name, message string) error {
	return in.fail(in.tx.failure(name, message), Event{Event: EventFailed, Session: in.id})
}

func (in InSession) fail(f *Failure, e Event) error {
	e.Reason = f.String()
	in.tx.addEvent(e)
	in.endLate()
	in.change(func(s *Session) { s.Failure, s.FailedSeq, s.Asks = f, in.tx.Seq(), nil })
	return in.tx.failed
}

// PromptedAfter reports whether the session was prompted after a moment of this boot (nanoseconds, see
// [machine.SinceBoot]), as far as known.
func (s Session) PromptedAfter(sinceBoot int64) bool {
	return s.PromptedBoot != "" && s.PromptedBoot == machine.BootID() && s.PromptedSinceBoot > sinceBoot
}

// change changes the session and moves it to the front.
func (in InSession) change(change func(*Session)) {
	all, s := in.tx.sessions(), Session{ID: in.id}
	if i := sessionAt(all, in.id); i >= 0 {
		s = all[i]
		all = slices.Delete(all, i, i+1)
	}
	change(&s)
	all = slices.Insert(all, 0, s)
	in.tx.st.Sessions = in.tx.encoded(all[:min(len(all), maxSessions)])
}

func sessionAt(all []Session, id string) int {
	return slices.IndexFunc(all, func(s Session) bool { return s.ID == id })
}

// Waiter is the consumer that waits for the next entry while its session is idle. There is at most one: a later waiter
// replaces an earlier one, which notices that at its next check.
type Waiter struct {
	Name      string    `json:"name"` // unique
	SessionID string    `json:"session_id,omitempty"`
	Since     time.Time `json:"since"`
	Process
}

// Waiter returns the waiting consumer, or nil. Its process may be gone.
func (t *state) Waiter() (*Waiter, error) { return recorded[Waiter](t.st.Waiter, "waiter") }

// Wait makes this process the waiter of the session, under that name, in place of any other.
func (in InSession) Wait(name string) error {
	in.tx.st.Waiter = in.tx.encoded(in.tx.thisProcess(name, in.id))
	return in.tx.failed
}

func (t *Tx) thisProcess(name, session string) Waiter {
	return Waiter{Name: name, SessionID: session, Since: t.box.utcNow(), Process: ProcessOf(os.Getpid())}
}

// StopWaiting removes the waiter, whichever process it is.
func (t *Tx) StopWaiting() { t.forgetRecorded(&t.st.Waiter) }

// Finding is a fact about a session, and since when it holds.
type Finding struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"` // one line of prose
}

// maxFinding bounds the text of a finding, which every record carries.
const maxFinding = 500

// NoteUncounted records why the spending of the session is not counted although limits apply. An empty cause means that
// it is counted. Repeating a cause changes nothing.
func (in InSession) NoteUncounted(cause string) {
	cause = oneLine(cause)
	if in.Uncounted() == cause {
		return
	}
	var found *Finding
	if cause != "" {
		found = &Finding{At: in.tx.box.utcNow(), Text: cause}
		in.tx.person = true
		in.tx.addEvent(Event{Event: EventUncounted, Session: in.id, Reason: cause})
	}
	in.change(func(s *Session) { s.Uncounted = found })
}

// Uncounted returns the cause that [InSession.NoteUncounted] recorded, "" for none.
func (in InSession) Uncounted() string {
	if found := in.with(`"uncounted":`).Uncounted; found != nil {
		return found.Text
	}
	return ""
}

// SameFinding reports whether two texts are recorded as the same finding.
func SameFinding(a, b string) bool { return oneLine(a) == oneLine(b) }

// with returns the session if any session has that member, else an empty one. At nearly every turn no session has it,
// which needs no decoding.
func (in InSession) with(member string) Session {
	if !bytes.Contains(in.tx.st.Sessions, []byte(member)) {
		return Session{}
	}
	return in.Known()
}

// oneLine shortens a text for a finding.
func oneLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.ToValidUTF8(text[:min(len(text), maxFinding)], "")
}
