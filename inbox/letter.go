package inbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// StreamMember is the metadata of an entry that an agent took from a stream: an object that names the stream. The
// stream has a dead letter of such an entry, too, and people deal with that one.
const StreamMember = "nats"

// Letter is a dead letter as the file has it, with what has become of it since.
type Letter struct {
	Letter string `json:"letter"` // its name, 12 hex digits
	DeadLetter
	LetterMark

	limited bool // see WithLimits
}

// Limits returns the limits of the letter's entry: see [Entry.Limits].
func (l Letter) Limits() json.RawMessage {
	return decodeEntry(l.exact()).Limits()
}

// WithLimits returns the letter to be requeued with limits that a person set, in place of those of the entry.
func (l Letter) WithLimits(limits json.RawMessage) (Letter, error) {
	raw, err := l.RawLine.Bytes()
	if err != nil {
		return l, fmt.Errorf("requeue %s: %w", l.Letter, err)
	}
	if raw, err = withLimits(raw, limits); err != nil {
		return l, fmt.Errorf("requeue %s with other limits: %w", l.Letter, err)
	}
	l.RawLine, l.limited = rawLineOf(raw), true
	return l, nil
}

// withLimits returns the line with other limits. A line of plain text becomes an envelope.
func withLimits(raw, limits []byte) ([]byte, error) {
	var o flat.Object
	envelope := bytes.TrimSpace(bytes.TrimPrefix(raw, byteOrderMark))
	if m, err := flat.Parse(envelope); err == nil && m.IsString(promptMember) && !flat.TooDeep(envelope) {
		m.Without([]string{limitsMember}, func(name string, value []byte) { o.Raw(name, value) })
	} else {
		_, text, _ := decodeLine(raw)
		o.String(promptMember, text)
	}
	o.Raw(limitsMember, limits)
	line := bytes.Clone(o.End())
	if len(line) > MaxLine {
		return nil, fmt.Errorf("the line would be %d bytes long, and %d is the most", len(line), MaxLine)
	}
	return line, nil
}

// Text returns what should have been delivered, decoded from the raw line.
func (l Letter) Text() string {
	_, text, _ := decodeLine(l.exact())
	return text
}

// LetterMark says what has become of a letter. Each member comes from a line of .dead-letter.jsonl that names
// the letter.
type LetterMark struct {
	LateReply  string     `json:"late_reply,omitempty"` // of a turn that ended after all
	RepliedAt  *time.Time `json:"replied_at,omitempty"`
	RequeuedAt *time.Time `json:"requeued_at,omitempty"`
	AcceptedAt *time.Time `json:"accepted_at,omitempty"`
}

// Open reports whether the letter was neither requeued nor accepted.
func (m *LetterMark) Open() bool { return m.RequeuedAt == nil && m.AcceptedAt == nil }

// letterMark is the line of a mark. Earlier releases know only the mark of requeueing, and take any other line with an
// entry_id for a letter.
type letterMark struct {
	Letter  string `json:"letter"`
	EntryID string `json:"entry_id,omitempty"`
	ID      string `json:"id,omitempty"`
	Of      Reason `json:"of,omitempty"` // why the closed letter was set aside
	LetterMark
}

func (t *Tx) mark(m letterMark) { t.addJSON(journal.DeadLetters, t.encoded(m)) }

// LetterName returns a [Letter.Letter]. It stays the same where an editor respells the line, so that marks stay valid.
func LetterName(d DeadLetter) string {
	return entryID(fmt.Appendf(nil, "%s %d %d", d.EntryID, d.StartOffset, d.DeadLetteredAt.UnixNano()))[:12]
}

// ParseLetter reads a line of .dead-letter.jsonl: a dead letter, or a mark on an earlier one. A letter needs
// an entry_id, or a raw line from which to compute it, and may lack any other member.
func ParseLetter(l []byte) (letter Letter, mark, ok bool) {
	if json.Unmarshal(l, &letter) != nil {
		return Letter{}, false, false
	}
	hasLine := letter.RawLine != RawLine{} || letter.RawFile != ""
	marks := letter.RepliedAt != nil || !letter.Open()
	if marks && letter.Letter != "" && letter.Reason == "" && !hasLine {
		return letter, true, true
	}
	if letter.EntryID == "" {
		raw, err := letter.RawLine.Bytes()
		if err != nil || len(raw) == 0 {
			return Letter{}, false, false
		}
		letter.EntryID = entryID(raw)
	}
	letter.Letter, letter.LetterMark = LetterName(letter.DeadLetter), LetterMark{}
	return letter, false, true
}

// Requeueable returns an error if the letter cannot be requeued: it already was, or it would only be set aside again.
func (b *Inbox) Requeueable(l Letter) error {
	raw, err := l.RawLine.Bytes()
	e := decodeEntry(raw)
	switch {
	case l.RequeuedAt != nil:
		return fmt.Errorf("requeue %s: it was requeued at %s", l.Letter, l.RequeuedAt.Format(time.RFC3339))
	case l.AcceptedAt != nil:
		return fmt.Errorf("requeue %s: its late reply was accepted at %s, and is the entry's result", l.Letter, l.AcceptedAt.Format(time.RFC3339))
	case l.RawFile != "" && len(raw) == 0 || l.Reason == ReasonTooLong || len(raw) > MaxLine:
		return fmt.Errorf("requeue %s: it is %s, and would be set aside again: send what it should have been", l.Letter, ReasonTooLong)
	case l.Reason == ReasonWide:
		return fmt.Errorf("requeue %s: %s", l.Letter, wideMessage)
	case err != nil:
		return fmt.Errorf("requeue %s: %w: mend it in %s, or purge it", l.Letter, err, b.fileOf(journal.DeadLetters))
	case len(bytes.TrimSpace(raw)) == 0:
		return fmt.Errorf("requeue %s: it has no raw_line: mend it in %s, or purge it", l.Letter, b.fileOf(journal.DeadLetters))
	case bytes.ContainsAny(raw, "\n"):
		return fmt.Errorf("requeue %s: its raw_line is more than one line: mend it in %s, or purge it", l.Letter, b.fileOf(journal.DeadLetters))
	case strings.TrimSpace(e.Text) == "":
		return fmt.Errorf("requeue %s: it is %s, and would be set aside again: send what it should have been", l.Letter, ReasonEmpty)
	case l.Reason == ReasonOverBudget && !l.limited:
		return fmt.Errorf("requeue %s: it is %s, and would be so again: give it a higher limit, with --max-cost, --max-tokens or --max-time", l.Letter, ReasonOverBudget)
	case l.Reason == ReasonLimits && !l.limited:
		return fmt.Errorf("requeue %s: its limits cannot be understood, or count only if you set them, and it would be set aside again: give it others, as in --max-cost 5, or send it anew", l.Letter)
	case e.expired(b.opts.Now()):
		return fmt.Errorf("requeue %s: it expired at %s, and would be set aside again: send it anew", l.Letter, e.timeMember(expiresMember).Format(time.RFC3339))
	}
	return nil
}

// Requeue appends the letter's original bytes to the inbox and marks the letter, both with the next commit. An entry
// that was canceled before it was due, and still is not due, goes back to the schedule. Requeue returns the letter with
// the mark. The letter must have been read in this transaction, and be [Inbox.Requeueable]. Commit before the next
// call.
//
// If somebody may still be writing the last line of the inbox, the error matches [ErrTorn]. With a mark from
// [Inbox.AwaitStill] in still, and no change of the file since, that line gets its newline instead.
func (t *Tx) Requeue(l Letter, still Mark) (Letter, error) {
	if err := t.box.Requeueable(l); err != nil {
		return l, err
	}
	if writing, err := t.beingWritten(); err != nil {
		return l, err
	} else if writing && still != t.queueMark() {
		return l, fmt.Errorf("requeue %s: %w: try again when it is whole", l.Letter, ErrTorn)
	}
	raw, _ := l.RawLine.Bytes() // it can be requeued
	if bytes.HasSuffix(raw, []byte("\r")) {
		raw = append(raw, '\r') // a carriage return before the newline would not be part of the line
	}
	now := t.box.utcNow()
	t.noticeGone()
	kind := journal.Queue
	if s, ok := parseScheduled(raw); ok && l.EndOffset == 0 && s.NotBefore.After(now) { // canceled before its time
		kind = journal.Scheduled
	}
	t.addLine(journal.Line{Kind: kind, Data: raw})
	if l.limited {
		t.accountant.Raise(entryID(bytes.TrimSuffix(raw, []byte("\r"))))
	}
	t.mark(letterMark{l.Letter, l.EntryID, l.ID, l.Reason, LetterMark{RequeuedAt: &now}})
	t.forgetLate(l.Letter)
	l.RequeuedAt = &now
	t.addEvent(Event{Event: EventRequeued, EntryID: l.EntryID, ID: l.ID, Attempt: l.Attempts, Reason: "dead letter " + l.Letter})
	return l, t.failed
}
