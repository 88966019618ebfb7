package inbox

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/machine"
)

// maxSessions is how many sessions are remembered, latest first.
const maxSessions = 8

// Session is a consumer that reported its start, its end or an error.
type Session struct {
	ID  string `json:"id"`
	PID int    `json:"pid,omitempty"`
	// Boot and Namespace say where PID is valid. ProcessStart tells the process from a later one with the
	// same PID: see package machine.
	Boot         string `json:"boot,omitempty"`
	Namespace    string `json:"pid_namespace,omitempty"`
	ProcessStart int64  `json:"process_start,omitempty"`

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

	// Blocks is how many stops in a row were blocked for entries, as [Tx.CountBlock] counted them.
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

// Life reports whether the session's process runs.
func (s Session) Life() machine.Life {
	return machine.LifeOf(s.Boot, s.Namespace, s.PID, s.ProcessStart)
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

// Session returns what is known of a session, only its ID if nothing is.
func (t *state) Session(id string) (Session, error) {
	all, err := t.Sessions()
	if i := sessionAt(all, id); i >= 0 {
		return all[i], nil
	}
	return Session{ID: id}, err
}

// Acknowledged returns how many entries in a row a session has answered, with none by another session in
// between.
func (t *Tx) Acknowledged(session string) int {
	if t.st.Session != session {
		return 0
	}
	return t.st.Acknowledged
}

// Blocks returns how many stops of a session in a row were blocked for entries, as [Tx.CountBlock] counted
// them.
func (t *Tx) Blocks(session string) (int, error) {
	s, err := t.Session(session)
	return s.Blocks, err
}

// CountBlock counts a stop of a session that is blocked for an entry. first says that the previous stop was
// not blocked.
func (t *Tx) CountBlock(session string, first bool) error {
	return t.changeSession(session, func(s *Session) {
		if first {
			s.Blocks = 0
		}
		s.Blocks++
	})
}

// StartSession records that a session began or was resumed, in process pid (0 if unknown).
func (t *Tx) StartSession(id string, pid int) error { return t.StartSessionWith(id, pid, nil) }

// StartSessionWith is [Tx.StartSession] with the consumer's own note on the start, which is opaque to this
// package.
func (t *Tx) StartSessionWith(id string, pid int, note json.RawMessage) error {
	err := t.changeSession(id, func(s *Session) {
		now := t.box.utcNow()
		s.StartedAt, s.EndedAt, s.Asks = &now, nil, nil
		s.StartedSeq, s.StartNote = t.Seq(), note
		s.PID, s.Boot = pid, t.boot
		s.Namespace, s.ProcessStart = machine.PIDNamespace(), machine.ProcessStart(pid)
	})
	if err != nil {
		return err
	}
	t.arrive(id)
	t.ForgetStopped(id)
	return t.addEvent(Event{Event: EventStarted, Session: id})
}

// EndSession records that a session ended.
func (t *Tx) EndSession(id string) error {
	err := t.changeSession(id, func(s *Session) {
		now := t.box.utcNow()
		s.EndedAt, s.Asks = &now, nil
	})
	if err != nil {
		return err
	}
	t.endLate(id)
	return t.addEvent(Event{Event: EventEnded, Session: id})
}

// PromptSession records that a session was prompted. promptID is the client's name for the prompt, or "".
func (t *Tx) PromptSession(id, promptID string) error {
	return t.changeSession(id, func(s *Session) {
		s.PromptID = promptID
		now := t.box.utcNow()
		s.PromptedAt, s.Asks = &now, nil
		s.PromptedBoot, s.PromptedSinceBoot = t.boot, machine.SinceBoot()
	})
}

// Ask records that a session needs a person.
func (t *Tx) Ask(id, kind, text string) error {
	q := &Question{At: t.box.utcNow(), Kind: kind, Text: text}
	if err := t.changeSession(id, func(s *Session) { s.Asks = q }); err != nil {
		return err
	}
	t.person = true
	return t.addEvent(Event{Event: EventAsked, Session: id, Reason: q.String()})
}

// String returns the kind of question and its text.
func (q Question) String() string {
	if q.Text == "" {
		return q.Kind
	}
	return q.Kind + ": " + q.Text
}

// asksMember occurs in the encoded sessions if any of them asks something.
var asksMember = []byte(`"asks":`)

// StopAsking records that a session went on, and so needs nobody.
func (t *Tx) StopAsking(id string) error {
	if !bytes.Contains(t.st.Sessions, asksMember) {
		return nil // as at nearly every turn
	}
	if s, err := t.Session(id); err != nil || s.Asks == nil {
		return err
	}
	return t.changeSession(id, func(s *Session) { s.Asks = nil })
}

// Fail records an error of a session. The session's entry in flight stays in flight, and keeps the error too.
func (t *Tx) Fail(sessionID, name, message string) error {
	f := &Failure{Error: name, Message: message, At: t.box.utcNow()}
	e := Event{Event: EventFailed, Session: sessionID, Reason: f.String()}
	if t.inFlight != nil && t.inFlight.SessionID == sessionID {
		d := *t.inFlight
		d.Failure = f
		t.setInFlight(&d)
		e = eventOf(&d, EventFailed)
		e.Reason = f.String()
	}
	return t.failSession(sessionID, f, e)
}

// FailSession is [Tx.Fail] for an error that does not concern the entry in flight.
func (t *Tx) FailSession(sessionID, name, message string) error {
	f := &Failure{Error: name, Message: message, At: t.box.utcNow()}
	return t.failSession(sessionID, f, Event{Event: EventFailed, Session: sessionID, Reason: f.String()})
}

func (t *Tx) failSession(id string, f *Failure, e Event) error {
	if err := t.addEvent(e); err != nil {
		return err
	}
	t.endLate(id)
	return t.changeSession(id, func(s *Session) { s.Failure, s.FailedSeq, s.Asks = f, t.Seq(), nil })
}

// PromptedAfter reports whether the session was prompted after a moment of this boot (nanoseconds, see
// [machine.SinceBoot]), as far as known.
func (s Session) PromptedAfter(sinceBoot int64) bool {
	return s.PromptedBoot != "" && s.PromptedBoot == machine.BootID() && s.PromptedSinceBoot > sinceBoot
}

// changeSession changes a session and moves it to the front.
func (t *Tx) changeSession(id string, change func(*Session)) error {
	all, err := t.Sessions()
	if err != nil {
		return err
	}
	s := Session{ID: id}
	if i := sessionAt(all, id); i >= 0 {
		s = all[i]
		all = slices.Delete(all, i, i+1)
	}
	change(&s)
	all = slices.Insert(all, 0, s)
	t.st.Sessions, err = flat.JSON(all[:min(len(all), maxSessions)])
	t.dirty = true
	return err
}

func sessionAt(all []Session, id string) int {
	return slices.IndexFunc(all, func(s Session) bool { return s.ID == id })
}

// Waiter is the consumer that waits for the next entry while its session is idle. There is at most one: a
// later waiter replaces it, which the earlier one notices when it looks.
type Waiter struct {
	Name      string    `json:"name"` // unique
	SessionID string    `json:"session_id,omitempty"`
	Since     time.Time `json:"since"`
	// PID and the members after it identify the waiting process, as in [Session].
	PID          int    `json:"pid"`
	Boot         string `json:"boot,omitempty"`
	Namespace    string `json:"pid_namespace,omitempty"`
	ProcessStart int64  `json:"process_start,omitempty"`
}

// Life reports whether the waiter's process runs.
func (w Waiter) Life() machine.Life {
	return machine.LifeOf(w.Boot, w.Namespace, w.PID, w.ProcessStart)
}

// Waiter returns the waiting consumer, or nil. Its process may be gone.
func (t *state) Waiter() (*Waiter, error) { return recorded[Waiter](t.st.Waiter, "waiter") }

// Wait makes this process the waiter, under that name, in place of any other.
func (t *Tx) Wait(name, session string) error {
	var err error
	t.st.Waiter, err = flat.JSON(t.thisProcess(name, session))
	t.dirty = true
	return err
}

func (t *Tx) thisProcess(name, session string) Waiter {
	pid := os.Getpid()
	return Waiter{
		Name: name, SessionID: session, Since: t.box.utcNow(),
		PID: pid, Boot: t.boot, Namespace: machine.PIDNamespace(), ProcessStart: machine.ProcessStart(pid),
	}
}

// StopWaiting removes the waiter, whichever process it is.
func (t *Tx) StopWaiting() {
	if len(t.st.Waiter) > 0 {
		t.st.Waiter, t.dirty = nil, true
	}
}

// Finding is a fact about a session, with the time since when it holds.
type Finding struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"` // one line of prose
}

// maxFinding bounds the text of a finding, which every record carries.
const maxFinding = 500

// uncountedMember occurs in the encoded sessions if any of them has such a finding.
var uncountedMember = []byte(`"uncounted":`)

// NoteUncounted records why the spending of a session is not counted although limits apply. An empty cause
// says that it is counted. Repeating a cause changes nothing.
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

// Uncounted returns the cause that [Tx.NoteUncounted] recorded, "" for none.
func (t *state) Uncounted(session string) string {
	if s := t.sessionWith(uncountedMember, session); s != nil {
		return s.Uncounted.text()
	}
	return ""
}

// SameFinding reports whether two texts are recorded as the same finding.
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

// sessionWith returns a session if any session has that member. At nearly every turn none has, which is found
// without decoding.
func (t *state) sessionWith(member []byte, id string) *Session {
	if !bytes.Contains(t.st.Sessions, member) {
		return nil
	}
	s, err := t.Session(id)
	if err != nil {
		return nil
	}
	return &s
}

// oneLine shortens a text for a finding.
func oneLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.ToValidUTF8(text[:min(len(text), maxFinding)], "")
}
