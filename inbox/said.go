package inbox

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// VerdictKind is what an agent says of its entry.
type VerdictKind string

// The verdicts.
const (
	VerdictDone     VerdictKind = "done"     // it is done: the text is the result
	VerdictFailed   VerdictKind = "failed"   // it is to be tried again: the text says why
	VerdictRejected VerdictKind = "rejected" // it is never to be tried again: the text says why
)

const (
	// MaxResult is the longest result, in bytes: it is part of each record until the entry
	// is settled.
	MaxResult = 256 << 10
	// MaxReason is the longest reason, and the longest note of progress, in bytes.
	MaxReason = 4 << 10
	// MaxPutOff is how long an entry may be put off, and a note of progress holds.
	MaxPutOff = 7 * 24 * time.Hour
)

// Verdict is what an agent said itself of the entry that it works on. It is committed when it
// is said, and carried out by whoever settles the delivery: see package recover.
type Verdict struct {
	Kind VerdictKind `json:"verdict"`
	Text string      `json:"text,omitempty"`
	At   time.Time   `json:"at"`
	// Until is before when a failed entry is not to be delivered again, nil for at once.
	Until *time.Time `json:"until,omitempty"`
}

// Check says what is wrong with a verdict, as a sentence for who said it.
func (v Verdict) Check(now time.Time) error {
	most := MaxReason
	switch v.Kind {
	case VerdictDone:
		most = MaxResult
	case VerdictFailed, VerdictRejected:
		if strings.TrimSpace(v.Text) == "" {
			return errors.New("a reason is needed: whoever sent the entry reads it")
		}
	default:
		return fmt.Errorf("there is no verdict %q", v.Kind)
	}
	switch {
	case len(v.Text) > most:
		return fmt.Errorf("the text is %d bytes long, and %d is the most: put it into a file, and say which", len(v.Text), most)
	case !utf8.ValidString(v.Text):
		return errors.New("the text is not UTF-8")
	case v.Until != nil && v.Kind != VerdictFailed:
		return fmt.Errorf("only an entry that failed can be put off, not one that is %s", v.Kind)
	case v.Until != nil && v.Until.Sub(now) > MaxPutOff:
		return fmt.Errorf("an entry can be put off for %v at most", MaxPutOff)
	}
	return nil
}

// Say keeps a verdict with the entry in flight, in place of one that was said before.
func (t *Tx) Say(v Verdict) error {
	if t.inFlight == nil {
		return fmt.Errorf("say: %w", errNothingInFlight)
	}
	v.At = t.box.utcNow()
	if err := v.Check(v.At); err != nil {
		return err
	}
	d := *t.inFlight
	d.Verdict = &v
	t.setInFlight(&d)
	e := eventOf(&d, EventSaid)
	e.Reason, e.Until = string(v.Kind), v.Until
	if v.Text != "" {
		e.Reason += ": " + firstCharacters(v.Text, keptPrompt)
	}
	return t.addEvent(e)
}

// Progress is what an agent said of how far it is.
type Progress struct {
	Text string    `json:"text,omitempty"`
	At   time.Time `json:"at"`
	// Until is up to when it is not to be taken for one that stands still.
	Until time.Time `json:"until"`
}

// NoteProgress keeps with the entry in flight that it is being worked on, for that long.
func (t *Tx) NoteProgress(text string, length time.Duration) error {
	switch {
	case t.inFlight == nil:
		return fmt.Errorf("note progress: %w", errNothingInFlight)
	case len(text) > MaxReason:
		return fmt.Errorf("the text is %d bytes long, and %d is the most", len(text), MaxReason)
	case !utf8.ValidString(text):
		return errors.New("the text is not UTF-8")
	case length < 0 || length > MaxPutOff:
		return fmt.Errorf("the time is from 0 to %v", MaxPutOff)
	}
	d, now := *t.inFlight, t.box.utcNow()
	d.Progress = &Progress{Text: text, At: now, Until: now.Add(length)}
	t.setInFlight(&d)
	e := eventOf(&d, EventProgress)
	e.Reason, e.Until = firstCharacters(text, keptPrompt), &d.Progress.Until
	return t.addEvent(e)
}
