package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"heartbeat/internal/machine"
)

// CheckStatus is the state of an entry's check.
type CheckStatus string

// The statuses. A check that waits for the end of the turn has an empty one.
const (
	CheckRuns   CheckStatus = "running"
	CheckFailed CheckStatus = "failed"    // the agent continues with the check's output, or the entry is set aside
	CheckUnable CheckStatus = "unchecked" // the check could not be run, and is tried again
	CheckPassed CheckStatus = "passed"
)

// Check is a check that an entry must pass before it counts as answered: see package check. A delivery, a
// [Result] and a [DeadLetter] carry it, nil if the entry has none.
type Check struct {
	Name    string      `json:"name"` // names, comma-separated
	Status  CheckStatus `json:"status,omitempty"`
	Tries   int         `json:"tries,omitempty"`
	Seconds float64     `json:"seconds,omitempty"` // of all tries
	Tail    string      `json:"tail,omitempty"`    // the end of the last output
	Why     string      `json:"why,omitempty"`     // why it did not pass
	// Since is when the status was reached.
	Since *time.Time `json:"since,omitempty"`
	// Untold means that the model has not been given the output yet.
	Untold bool `json:"untold,omitempty"`
	// By is the process that runs the check.
	By *Waiter `json:"by,omitempty"`
}

// Running reports whether a live process runs the check.
func (c *Check) Running() bool {
	return c != nil && c.Status == CheckRuns && c.By != nil && c.By.Life() == machine.Alive
}

// Names returns the names of the checks, in order.
func (c *Check) Names() []string { return strings.Split(c.Name, ",") }

// kept returns the members that outlive the delivery.
func (c *Check) kept() *Check {
	if c == nil {
		return nil
	}
	return &Check{Name: c.Name, Status: c.Status, Tries: c.Tries, Seconds: c.Seconds, Tail: c.Tail, Why: c.Why}
}

// NoteCheck stores the state of the check with the entry in flight. A running check belongs to this process.
func (t *Tx) NoteCheck(c Check) error {
	if t.inFlight == nil {
		return fmt.Errorf("note a check: %w", errNothingInFlight)
	}
	d, now := *t.inFlight, t.box.utcNow()
	if c.By = nil; c.Status == CheckRuns {
		by := t.thisProcess("check", d.SessionID)
		c.By = &by
	}
	if d.Check == nil || d.Check.Status != c.Status || c.Since == nil {
		c.Since = &now
	}
	d.Check = &c
	t.setInFlight(&d)
	if c.Status != CheckFailed && c.Status != CheckUnable {
		return nil
	}
	e := eventOf(&d, EventUnchecked)
	if c.Status == CheckFailed {
		e.Event = EventCheckFailed
	}
	e.Reason = firstCharacters(c.Name + ": " + c.Why)
	t.addEvent(e)
	return t.failed
}

// Continue hands the entry in flight over again, within the same delivery, with the output of its failed check. Hand
// that over only after Commit returned nil. What the agent said of the entry so far is dropped. See [Tx.Worked].
func (t *Tx) Continue(to Recipient) error {
	switch {
	case t.inFlight == nil:
		return fmt.Errorf("continue: %w", errNothingInFlight)
	case t.inFlight.Check == nil || t.inFlight.Check.Status != CheckFailed:
		return errors.New("continue: no check of the entry in flight has failed")
	}
	d := *t.inFlight
	c := *d.Check
	c.Untold = false
	d.Check, d.Verdict, d.Progress = &c, nil, nil
	d.Took += t.worked
	t.delivers = true
	t.setInFlight(&d)
	t.st.Handed = false
	return t.Bind(to)
}

// Checks returns the names of the checks that the envelope asks for, nil if it names none.
func (e Entry) Checks() ([]string, error) {
	raw, said := e.Metadata[checkMember]
	if !said {
		return nil, nil
	}
	return parseChecks(raw)
}

const (
	maxChecks    = 16
	maxCheckName = 64
)

// CheckName returns an error if a name is not valid for a check.
func CheckName(name string) error {
	switch {
	case name == "" || len(name) > maxCheckName:
		return fmt.Errorf("the name of a check has 1 to %d characters", maxCheckName)
	case strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}):
		return fmt.Errorf("the name %q of a check has another character than letters, digits, '-', '_' and '.'", name)
	}
	return nil
}

func parseChecks(raw []byte) (names []string, err error) {
	if json.Unmarshal(raw, &names) != nil {
		names = []string{""}
		if json.Unmarshal(raw, &names[0]) != nil {
			return nil, errors.New("check is the name of a check, or a list of names")
		}
	}
	if len(names) == 0 || len(names) > maxChecks {
		return nil, fmt.Errorf("check has 1 to %d names", maxChecks)
	}
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// checksJSON encodes the `check` member of an envelope.
func checksJSON(names []string) ([]byte, error) {
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return nil, err
		}
	}
	switch {
	case len(names) > maxChecks:
		return nil, fmt.Errorf("an entry may ask for %d checks, not %d", maxChecks, len(names))
	case len(names) == 1:
		return json.Marshal(names[0])
	}
	return json.Marshal(names)
}

// NoteChecks stores the checks of the consumer's wiring with the next commit, for read-only commands.
func (t *Tx) NoteChecks(names []string) {
	if all := strings.Join(names, ","); t.st.Checks != all {
		t.st.Checks, t.dirty = all, true
	}
}

// KnownChecks returns the checks that the wiring reported last, nil if none were reported.
func (v *View) KnownChecks() []string {
	if v.tx.st.Checks == "" {
		return nil
	}
	return strings.Split(v.tx.st.Checks, ",")
}
