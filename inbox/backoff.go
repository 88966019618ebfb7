package inbox

import (
	"encoding/json"
	"fmt"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/host"
	"heartbeat/internal/words"
)

// Backoff says until when nothing is delivered because entries, or the turns
// between them, failed. It outlives every session.
type Backoff struct {
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
	// Streak is how many entries failed in a row since one was answered.
	Streak int `json:"streak"`
	// Named says that the error itself named the end, so that it was not our
	// guess.
	Named   bool     `json:"named,omitempty"`
	Failure *Failure `json:"failure,omitempty"`

	// Boot and SinceBoot (nanoseconds) say when it began by a clock that nobody
	// can set: see package host.
	Boot      string `json:"boot,omitempty"`
	SinceBoot int64  `json:"since_boot_ns,omitempty"`
}

// String says until when, and why, delivery is backing off.
func (b Backoff) String() string {
	s := "backing off until " + words.Stamp(b.Until)
	if b.Failure != nil {
		s += " (" + words.Line(b.Failure.String()) + ")"
	}
	return s
}

// BackoffEnds is what ends a back-off, for people.
const BackoffEnds = "then, or until heartbeat resume"

// BackOff holds delivery for the given time from the commit on. The caller counts
// the streak: see [Tx.Streak].
func (t *Tx) BackOff(length time.Duration, streak int, named bool, f *Failure) (Backoff, error) {
	now := t.box.utcNow()
	b := Backoff{
		At: now, Until: now.Add(max(0, length)), Streak: streak, Named: named, Failure: f,
		Boot: t.boot, SinceBoot: host.SinceBoot(),
	}
	var err error
	if t.st.Backoff, err = flat.JSON(b); err != nil {
		return b, err
	}
	e := Event{Event: EventBackingOff, Until: &b.Until}
	if f != nil {
		e.Reason = f.String()
	}
	return b, t.addEvent(e)
}

// Backoff is the back-off that holds now, or nil. Its Until is what the wall
// clock will show at its end, even if that clock was set since.
func (t *Tx) Backoff() (*Backoff, error) {
	b, err := t.lastBackoff()
	if b == nil || err != nil {
		return nil, err
	}
	now := t.box.utcNow()
	left := b.left(now, t.boot)
	if left <= 0 {
		return nil, nil
	}
	b.Until = now.Add(left)
	return b, nil
}

// Streak is the number of failures in a row that the last [Tx.BackOff] was given,
// 0 once an entry was answered or delivery was resumed.
func (t *Tx) Streak() (int, error) {
	b, err := t.lastBackoff()
	if b == nil || err != nil {
		return 0, err
	}
	return b.Streak, nil
}

func (t *Tx) lastBackoff() (*Backoff, error) {
	if len(t.st.Backoff) == 0 {
		return nil, nil
	}
	b := new(Backoff)
	if err := json.Unmarshal(t.st.Backoff, b); err != nil {
		return nil, fmt.Errorf("read journal: back-off: %w: %w", ErrCorrupt, err)
	}
	return b, nil
}

// left is how much of it remains. In the boot in which it began, the wall clock
// does not matter. In another boot there is only that clock; if it was set back,
// the back-off must not last longer than it was meant to.
func (b *Backoff) left(now time.Time, boot string) time.Duration {
	whole := b.Until.Sub(b.At)
	if b.Boot != "" && b.Boot == boot {
		return min(whole, whole-time.Duration(host.SinceBoot()-b.SinceBoot))
	}
	return min(whole, b.Until.Sub(now))
}

// forgetBackoff ends the back-off: something worked again.
func (t *Tx) forgetBackoff() {
	if len(t.st.Backoff) > 0 {
		t.st.Backoff, t.dirty = nil, true
	}
}
