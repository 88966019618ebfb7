package inbox

import (
	"fmt"
	"os"
	"strings"
	"time"

	"heartbeat/internal/machine"
	"heartbeat/internal/words"
)

// Holds are what keeps waiting entries from being delivered: a person's pause, a back-off after failures, and a process
// that is about to end. They do not concern the entry in flight.
type Holds struct{ tx *Tx }

// Holds returns what holds delivery; changes are committed with the transaction.
func (t *state) Holds() Holds { return Holds{t.tx} }

// Pause is since when, until when and why nothing is delivered.
type Pause struct {
	At     time.Time  `json:"at"`
	Reason string     `json:"reason,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
}

// LimitOfDay ends the reason of a pause that a daily limit caused.
const LimitOfDay = "(the limit of a day)"

// String returns since when, until when and why delivery is paused.
func (p Pause) String() string {
	s := "paused since " + words.Stamp(p.At)
	if p.Until != nil {
		s += " until " + words.Stamp(*p.Until)
	}
	if p.Reason != "" {
		s += " (" + words.Line(p.Reason) + ")"
	}
	return s
}

// Ends returns, for a person, what ends the pause.
func (p Pause) Ends() string {
	switch {
	case p.OfLimit():
		return "then, or until the hook has a higher limit, and then heartbeat resume"
	case p.Until != nil:
		return "then, or until heartbeat resume"
	}
	return "heartbeat resume"
}

// OfLimit reports whether a daily limit caused the pause.
func (p Pause) OfLimit() bool { return p.Until != nil && strings.HasSuffix(p.Reason, LimitOfDay) }

// Paused returns the pause that holds now, or nil. A consumer asks before it calls [Tx.Next].
func (h Holds) Paused() (*Pause, error) {
	p, err := recorded[Pause](h.tx.st.Paused, "pause")
	if p == nil || p.Until != nil && !h.tx.box.utcNow().Before(*p.Until) {
		return nil, err
	}
	return p, nil
}

// Pause stops delivery from the commit on, until [Holds.Resume] or the given time (nil: none). A pause that
// already holds keeps its beginning.
func (h Holds) Pause(reason string, until *time.Time) (Pause, error) {
	p := Pause{At: h.tx.box.utcNow(), Reason: reason, Until: until}
	if held, err := h.Paused(); err != nil {
		return p, err
	} else if held != nil {
		p.At = held.At
	}
	h.tx.st.Paused, h.tx.person = h.tx.encoded(p), true
	h.tx.addEvent(Event{Event: EventPaused, Reason: reason, Until: until})
	return p, h.tx.failed
}

// Resume ends a pause and a back-off, if there are any.
func (h Holds) Resume() error {
	if len(h.tx.st.Paused) == 0 && len(h.tx.st.Backoff) == 0 {
		return nil
	}
	h.tx.st.Paused = nil
	h.tx.forgetBackoff()
	h.tx.addEvent(Event{Event: EventResumed})
	return h.tx.failed
}

// Backoff is until when nothing is delivered, because entries, or the turns between them, failed. It outlives every
// session.
type Backoff struct {
	At      time.Time `json:"at"`
	Until   time.Time `json:"until"`
	Streak  int       `json:"streak"`          // failures in a row
	Named   bool      `json:"named,omitempty"` // the error itself named the end
	Failure *Failure  `json:"failure,omitempty"`

	// Boot and SinceBoot (nanoseconds) are the beginning by a clock that nobody can set: see package machine.
	Boot      string `json:"boot,omitempty"`
	SinceBoot int64  `json:"since_boot_ns,omitempty"`
}

// String returns until when and why delivery is backing off.
func (b Backoff) String() string {
	s := "backing off until " + words.Stamp(b.Until)
	if b.Failure != nil {
		s += " (" + words.Line(b.Failure.String()) + ")"
	}
	return s
}

// BackoffEnds is, for a person, what ends a back-off.
const BackoffEnds = "then, or until heartbeat resume"

// BackOff holds delivery for the given time from the commit on. The caller counts the streak: see [Holds.Streak].
func (h Holds) BackOff(length time.Duration, streak int, named bool, f *Failure) (Backoff, error) {
	now := h.tx.box.utcNow()
	b := Backoff{
		At: now, Until: now.Add(max(0, length)), Streak: streak, Named: named, Failure: f,
		Boot: h.tx.boot, SinceBoot: machine.SinceBoot(),
	}
	h.tx.st.Backoff = h.tx.encoded(b)
	e := Event{At: now, Event: EventBackingOff, Until: &b.Until}
	if f != nil {
		e.Reason = f.String()
	}
	h.tx.addEvent(e)
	return b, h.tx.failed
}

// Backoff returns the back-off that holds now, or nil. Its Until is what the wall clock will show at its end,
// even if that clock was set since.
func (h Holds) Backoff() (*Backoff, error) {
	b, err := h.lastBackoff()
	if b == nil || err != nil {
		return nil, err
	}
	// The wall clock counts only in another boot, and for an end that the error named. Set back, it prolongs nothing.
	now := h.tx.box.utcNow()
	whole, left := b.Until.Sub(b.At), b.Until.Sub(now)
	if b.Boot != "" && b.Boot == h.tx.boot {
		rest := whole - time.Duration(machine.SinceBoot()-b.SinceBoot)
		if !b.Named || rest < left { // the boot clock of a suspended virtual machine stands still
			left = rest
		}
	}
	if left = min(whole, left); left <= 0 {
		return nil, nil
	}
	b.Until = now.Add(left)
	return b, nil
}

// Streak returns the number of failures in a row that the last [Holds.BackOff] was given, 0 once an entry was
// answered or delivery was resumed.
func (h Holds) Streak() (int, error) {
	b, err := h.lastBackoff()
	if b == nil || err != nil {
		return 0, err
	}
	return b.Streak, nil
}

func (h Holds) lastBackoff() (*Backoff, error) { return recorded[Backoff](h.tx.st.Backoff, "back-off") }

// forgetBackoff ends the back-off after a success.
func (t *Tx) forgetBackoff() { t.forgetRecorded(&t.st.Backoff) }

// Stopping is a process whose sessions work on the inbox and that is about to end. Until it has ended, nothing is
// delivered. Unlike a [Pause], it ends with that process, however that ends, and leaves a person's pause as it is.
type Stopping struct {
	At time.Time `json:"at"`
	Process
}

// String returns a clause that names the process.
func (s Stopping) String() string {
	return fmt.Sprintf("held back, since process %d, which has sessions work on the inbox, is about to end", s.PID)
}

// StoppingEnds is, for a person, what ends a [Stopping].
const StoppingEnds = "it has ended"

// Stopping returns the process that is about to end, nil unless one certainly lives.
func (h Holds) Stopping() (*Stopping, error) {
	s, err := recorded[Stopping](h.tx.st.Stopping, "stop")
	if s == nil || err != nil || s.Life() != machine.Alive {
		return nil, err
	}
	return s, nil
}

// BeginStop stops delivery from the commit on, until this process has ended or calls [Holds.EndStop].
func (h Holds) BeginStop() error {
	h.tx.st.Stopping = h.tx.encoded(Stopping{At: h.tx.box.utcNow(), Process: ProcessOf(os.Getpid())})
	return h.tx.failed
}

// EndStop lets delivery continue: the process has no sessions any more.
func (h Holds) EndStop() { h.tx.forgetRecorded(&h.tx.st.Stopping) }
