package inbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/words"
)

// Pause says since when, and why, nothing is delivered.
type Pause struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
	// Until is when the pause ends by itself; nil means when [Tx.Resume] is
	// called.
	Until *time.Time `json:"until,omitempty"`
}

// LimitOfDay ends the reason of a pause that holds since a day has reached its limit.
const LimitOfDay = "(the limit of a day)"

// String says since when, until when and why delivery is paused.
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

// Ends is what ends the pause, for people.
func (p Pause) Ends() string {
	switch {
	case p.OfLimit():
		return "then, or until the hook has a higher limit, and then heartbeat resume"
	case p.Until != nil:
		return "then, or until heartbeat resume"
	}
	return "heartbeat resume"
}

// OfLimit reports whether this is such a pause.
func (p Pause) OfLimit() bool { return p.Until != nil && strings.HasSuffix(p.Reason, LimitOfDay) }

// Paused is the pause that holds now, or nil. A consumer asks before it calls
// [Tx.Next]. A pause does not affect the entry in flight.
func (t *Tx) Paused() (*Pause, error) {
	if len(t.st.Paused) == 0 {
		return nil, nil
	}
	p := new(Pause)
	if err := json.Unmarshal(t.st.Paused, p); err != nil {
		return nil, fmt.Errorf("read journal: pause: %w: %w", ErrCorrupt, err)
	}
	if p.Until != nil && !t.box.utcNow().Before(*p.Until) {
		return nil, nil
	}
	return p, nil
}

// Pause stops delivery from the commit on, until [Tx.Resume] or the given time
// (nil: none). A pause that already holds keeps its beginning.
func (t *Tx) Pause(reason string, until *time.Time) (Pause, error) {
	p := Pause{At: t.box.utcNow(), Reason: reason, Until: until}
	if held, err := t.Paused(); err != nil {
		return p, err
	} else if held != nil {
		p.At = held.At
	}
	var err error
	if t.st.Paused, err = flat.JSON(p); err != nil {
		return p, err
	}
	t.person = true
	return p, t.addEvent(Event{Event: EventPaused, Reason: reason, Until: until})
}

// Resume ends a pause and a back-off, if there are any.
func (t *Tx) Resume() error {
	if len(t.st.Paused) == 0 && len(t.st.Backoff) == 0 {
		return nil
	}
	t.st.Paused = nil
	t.forgetBackoff()
	return t.addEvent(Event{Event: EventResumed})
}
