package inbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/words"
)

// Delivery is an entry in flight, as .in-flight holds it. The first five members are those of heartbeat-rs,
// whose files can be read too.
type Delivery struct {
	EntryID     string `json:"entry_id"`
	StartOffset int64  `json:"start_offset"`
	EndOffset   int64  `json:"end_offset"`
	RawLine
	DeliveredAt time.Time `json:"delivered_at"`

	DeliveredSeq int64 `json:"delivered_seq,omitempty"`

	Attempt      int             `json:"attempt,omitempty"`
	SessionID    string          `json:"session_id,omitempty"`
	PromptID     string          `json:"prompt_id,omitempty"`
	Inbox        string          `json:"inbox,omitempty"`
	Detached     bool            `json:"detached,omitempty"`     // the inbox was replaced since
	Unterminated bool            `json:"unterminated,omitempty"` // the line had no newline
	TextFile     string          `json:"text_file,omitempty"`    // the file with a long text
	Evidence     json.RawMessage `json:"evidence,omitempty"`     // the hook's own
	FirstSeq     int64           `json:"first_seq,omitempty"`    // of the first delivery, if earlier
	// Spent is what was charged to the entry so far, in all its deliveries: an amount as package price writes it.
	Spent string `json:"-"`
	// Took is how long earlier deliveries of the entry were worked on: see [Tx.Worked].
	Took time.Duration `json:"-"`
	Course
}

// Course is what became known of a delivery after it was handed over.
type Course struct {
	Failure  *Failure  `json:"failure,omitempty"`
	Verdict  *Verdict  `json:"verdict,omitempty"`
	Progress *Progress `json:"progress,omitempty"`
	Check    *Check    `json:"check,omitempty"`
}

// Failure is an error that kept an entry from being answered.
type Failure struct {
	Error   string    `json:"error"`
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

func (t *Tx) failure(name, message string) *Failure {
	return &Failure{Error: name, Message: message, At: t.box.utcNow()}
}

// String returns the error's name and message.
func (f *Failure) String() string {
	if f.Message == "" {
		return f.Error
	}
	return f.Error + ": " + f.Message
}

// Why returns a dead letter's reason, with what failed. If both have the same name, it stands once.
func (r Reason) Why(f *Failure) string {
	switch {
	case f == nil:
		return string(r)
	case f.Error == string(r):
		return f.String()
	}
	return fmt.Sprintf("%s (%s)", r, f)
}

// Recipient is to whom an entry is delivered. Every field is optional, and opaque to this package.
type Recipient struct {
	SessionID, PromptID string
	Evidence            json.RawMessage
	// Checks names the checks that the entry must pass. Only [Tx.Deliver] uses it.
	Checks []string
}

func (r Recipient) check() error {
	if len(r.Evidence) > 0 && (!json.Valid(r.Evidence) || flat.TooDeep(r.Evidence)) {
		return errors.New("the evidence is not JSON, or nested too deeply")
	}
	return nil
}

// Text returns what was delivered, decoded from the raw line.
func (d *Delivery) Text() string {
	_, text, _ := decodeLine(d.exact())
	return text
}

// ID returns the envelope's own id, or "".
func (d *Delivery) ID() string {
	id, _, _ := decodeLine(d.exact())
	return id
}

// First returns the commit of the entry's first delivery.
func (d *Delivery) First() int64 { return cmp.Or(d.FirstSeq, d.DeliveredSeq) }

// label is the entry's name in messages.
func (d *Delivery) label() string { return words.Name(d.ID(), d.EntryID) }

// Metadata returns the envelope's members other than its prompt and id.
func (d *Delivery) Metadata() map[string]json.RawMessage {
	_, _, meta := decodeLine(d.exact())
	return meta
}

// Limits returns the cost limits of the entry's envelope: see [Entry.Limits].
func (d *Delivery) Limits() json.RawMessage { return d.Metadata()[limitsMember] }

// Entry returns what was delivered, decoded.
func (d *Delivery) Entry() Entry {
	e := decodeEntry(d.exact())
	e.EntryID = d.EntryID
	e.Start, e.End, e.Attempt = d.StartOffset, d.EndOffset, d.Attempt+1
	e.terminated, e.detached, e.textFile = !d.Unterminated, d.Detached, d.TextFile
	e.firstSeq, e.spent, e.took = d.First(), d.Spent, d.Took
	return e
}

// delivery is the reverse of [Delivery.Entry]: the delivery of an entry, to nobody yet.
func (e Entry) delivery() *Delivery {
	return &Delivery{
		EntryID: e.EntryID, StartOffset: e.Start, EndOffset: e.End, RawLine: rawLineOf(e.raw), Attempt: e.Attempt,
		Detached: e.detached, Unterminated: !e.terminated, TextFile: e.textFile,
		FirstSeq: e.firstSeq, Spent: e.spent, Took: e.took,
	}
}

// parseDelivery reads .in-flight.
func parseDelivery(file []byte) (*Delivery, error) {
	if len(bytes.TrimSpace(file)) == 0 {
		return nil, errors.New("it is empty")
	}
	m, err := flat.Parse(file)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"entry_id", "start_offset", "end_offset", "raw_line", "delivered_at"} {
		if !m.Has(name) {
			return nil, fmt.Errorf("it has no %s", name)
		}
	}
	if flat.TooDeep(file) {
		return nil, errors.New("it is nested too deeply")
	}
	var d Delivery
	if err := d.decode(m); err != nil {
		return nil, err
	}
	if d.StartOffset < 0 || d.EndOffset < d.StartOffset {
		return nil, fmt.Errorf("its offsets [%d,%d) are not a range", d.StartOffset, d.EndOffset)
	}
	if _, err := d.RawLine.Bytes(); err != nil {
		return nil, err
	}
	d.Attempt = max(1, d.Attempt)
	return &d, nil
}

// members lists the members of .in-flight in the order in which they are written.
func (d *Delivery) members(c flat.Codec) error {
	c.String("entry_id", &d.EntryID)
	c.Int("start_offset", &d.StartOffset)
	c.Int("end_offset", &d.EndOffset)
	c.String("raw_line", &d.RawLine.Text)
	c.Text("raw_base64", &d.RawLine.Base64)
	c.Time("delivered_at", &d.DeliveredAt)
	c.NonZero("delivered_seq", &d.DeliveredSeq)
	c.Count("attempt", &d.Attempt)
	c.Text("session_id", &d.SessionID)
	c.Text("prompt_id", &d.PromptID)
	c.Text("inbox", &d.Inbox)
	c.Flag("detached", &d.Detached)
	c.Flag("unterminated", &d.Unterminated)
	c.Text("text_file", &d.TextFile)
	c.Raw("evidence", &d.Evidence)
	c.NonZero("first_seq", &d.FirstSeq)
	c.Text("spent", &d.Spent)
	took := int64(d.Took)
	c.NonZero("took_ns", &took)
	d.Took = max(0, time.Duration(took))
	return cmp.Or(flat.Pointer(c, "failure", &d.Failure), flat.Pointer(c, "verdict", &d.Verdict),
		flat.Pointer(c, "progress", &d.Progress), flat.Pointer(c, "check", &d.Check))
}

func (d *Delivery) encode() ([]byte, error) {
	var o flat.Object
	err := d.members(flat.To(&o))
	return o.End(), err
}

func (d *Delivery) decode(m *flat.Members) error {
	*d = Delivery{}
	if err := d.members(flat.From(m)); err != nil {
		return err
	}
	return m.Err()
}

// HandedOver notes that the text of the entry in flight went out whole. Only the deliverer knows that, and
// only after Commit. The note is not synced: a power loss that takes the note also ends the process that got
// the text. A kill does not take the note, so without a note it is uncertain whether the text went out.
//
// The note belongs to that one delivery, and later commits keep it.
func (t *Tx) HandedOver() error {
	if t.inFlight == nil {
		return fmt.Errorf("note that an entry was handed over: %w", errNothingInFlight)
	}
	t.st.Handed = true
	if t.dirty || !t.store.Followed() {
		return nil // the next commit carries it
	}
	if err := t.store.HandedOver(); err != nil {
		return fmt.Errorf("note that the entry %s was handed over: %w", t.inFlight.label(), err)
	}
	return nil
}

// IsHandedOver reports whether [Tx.HandedOver] was noted for the entry in flight.
func (t *Tx) IsHandedOver() bool { return t.inFlight != nil && t.st.Handed }
