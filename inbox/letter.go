package inbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/money/budget"
)

// Letter is a dead letter as the file has it, and what became of it since.
type Letter struct {
	// Letter names this letter, in 12 hex digits. An entry may have become a dead
	// letter more than once, so its own id would not do.
	Letter string `json:"letter"`
	DeadLetter
	LetterMark

	limited bool // see WithLimits
}

// WithLimits is the letter as it is requeued with other limits: they take the place of
// those that the entry had, and count in place of those of the flags.
func (l Letter) WithLimits(limits budget.Limits) (Letter, error) {
	raw, err := l.RawLine.Bytes()
	if err != nil {
		return l, fmt.Errorf("requeue %s: %w", l.Letter, err)
	}
	if old, err := decodeEntry(raw).Limits(); err == nil {
		limits = limits.Or(old)
	}
	limits.Raised = true
	if raw, err = withLimits(raw, limits.JSON()); err != nil {
		return l, fmt.Errorf("requeue %s with other limits: %w", l.Letter, err)
	}
	l.RawLine, l.limited = rawLineOf(raw), true
	return l, nil
}

// withLimits is the line with other limits. One that is only text becomes an envelope.
func withLimits(raw, limits []byte) ([]byte, error) {
	var o flat.Object
	if _, _, _, ok := decodeEnvelope(bytes.TrimSpace(bytes.TrimPrefix(raw, byteOrderMark))); !ok {
		_, text, _ := decodeLine(raw)
		o.String(promptMember, text)
	} else if m, err := flat.Parse(bytes.TrimSpace(bytes.TrimPrefix(raw, byteOrderMark))); err != nil {
		return nil, err
	} else {
		m.Without([]string{limitsMember}, func(name string, value []byte) { o.Raw(name, value) })
	}
	o.Raw(limitsMember, limits)
	line := bytes.Clone(o.End())
	if len(line) > MaxLine {
		return nil, fmt.Errorf("the line would be %d bytes long, and %d is the most", len(line), MaxLine)
	}
	return line, nil
}

// Text is what should have been delivered, decoded from the raw line.
func (l Letter) Text() string {
	raw, err := l.RawLine.Bytes()
	if err != nil {
		return l.RawLine.Text
	}
	_, text, _ := decodeLine(raw)
	return text
}

// LetterMark is what became of a letter since. Each member is a line of its own in
// .dead-letter.jsonl, which names the letter.
type LetterMark struct {
	// LateReply is what its session said at the end of the turn, at RepliedAt.
	LateReply string     `json:"late_reply,omitempty"`
	RepliedAt *time.Time `json:"replied_at,omitempty"`
	// RequeuedAt is when its bytes were appended to the inbox again, and AcceptedAt when the
	// late reply was made the entry's result.
	RequeuedAt *time.Time `json:"requeued_at,omitempty"`
	AcceptedAt *time.Time `json:"accepted_at,omitempty"`
}

// Open reports whether the letter was neither requeued nor accepted.
func (m *LetterMark) Open() bool { return m.RequeuedAt == nil && m.AcceptedAt == nil }

// add adds what another line says. Of late replies the first counts.
func (m *LetterMark) add(more LetterMark) {
	if m.RepliedAt == nil && more.RepliedAt != nil {
		m.LateReply, m.RepliedAt = more.LateReply, more.RepliedAt
	}
	m.RequeuedAt, m.AcceptedAt = cmp.Or(more.RequeuedAt, m.RequeuedAt), cmp.Or(more.AcceptedAt, m.AcceptedAt)
}

// letterMark is such a line. Releases that know only of requeueing read any other line with an
// entry_id as a letter.
type letterMark struct {
	Letter  string `json:"letter"`
	EntryID string `json:"entry_id,omitempty"`
	ID      string `json:"id,omitempty"`
	Of      Reason `json:"of,omitempty"` // the letter's, of a mark that closes it: see LetterCount
	LetterMark
}

func (t *Tx) mark(m letterMark) error {
	line, err := flat.JSON(m)
	t.addJSON(journal.DeadLetters, line)
	return err
}

// letterName does not depend on how the line is spelt, so that marks stay right
// after an editor rewrote it.
func letterName(d DeadLetter) string {
	return entryID(fmt.Appendf(nil, "%s %d %d", d.EntryID, d.StartOffset, d.DeadLetteredAt.UnixNano()))[:12]
}

func lettersError(err error) error {
	if err == nil || errors.Is(err, ErrMore) {
		return err
	}
	return fmt.Errorf("read dead letters: %w", err)
}

// ParseLetter reads a line of .dead-letter.jsonl: a dead letter, or a mark that says what
// became of an earlier one. A letter may lack any member except one: it needs an entry_id,
// or a raw line to compute it from.
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
	letter.Letter, letter.LetterMark = letterName(letter.DeadLetter), LetterMark{}
	return letter, false, true
}

// Requeueable returns an error that says why the letter cannot be requeued: it
// already was, or it would only be set aside again.
func (b *Inbox) Requeueable(l Letter) error {
	raw, err := l.RawLine.Bytes()
	e := decodeEntry(raw)
	_, invalid := e.Limits()
	switch {
	case l.RequeuedAt != nil:
		return fmt.Errorf("requeue %s: it was requeued at %s", l.Letter, l.RequeuedAt.Format(time.RFC3339))
	case l.AcceptedAt != nil:
		return fmt.Errorf("requeue %s: its late reply was accepted at %s, and is the entry's result", l.Letter, l.AcceptedAt.Format(time.RFC3339))
	case l.RawFile != "" && len(raw) == 0 || l.Reason == ReasonTooLong || len(raw) > MaxLine:
		return fmt.Errorf("requeue %s: it is %s, and would be set aside again: send what it should have been", l.Letter, ReasonTooLong)
	case l.Reason == ReasonWide:
		return fmt.Errorf("requeue %s: %s", l.Letter, wideMeans)
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
	case l.Reason == ReasonLimits && !l.limited && invalid == nil:
		return fmt.Errorf("requeue %s: its limits count only if you set them: give it some, as in --max-cost 5, or send it anew", l.Letter)
	case invalid != nil:
		return fmt.Errorf("requeue %s: %w, and it would be set aside again: give it others, as in --max-cost 5, or send it anew", l.Letter, invalid)
	case e.expired(b.opts.Now()):
		return fmt.Errorf("requeue %s: it expired at %s, and would be set aside again: send it anew", l.Letter, e.timeMember(expiresMember).Format(time.RFC3339))
	}
	return nil
}

// Requeue appends the letter's original bytes to the inbox and marks the letter,
// both with the next commit; commit before the next call. It returns the letter
// with the mark. The letter must be one of [Inbox.Letters] in this transaction,
// and [Inbox.Requeueable].
//
// If somebody may still be writing a last line of the inbox, the error matches
// [ErrTorn], unless still is a mark from [Inbox.AwaitStill] and the file has not
// changed since: that line then gets its newline.
func (t *Tx) Requeue(l Letter, still Mark) (Letter, error) {
	if err := t.box.Requeueable(l); err != nil {
		return l, err
	}
	if writing, err := t.beingWritten(); err != nil {
		return l, err
	} else if writing && still != t.queueMark() {
		return l, fmt.Errorf("requeue %s: %w: try again when it is whole", l.Letter, ErrTorn)
	}
	raw, err := l.RawLine.Bytes()
	if err != nil {
		return l, err
	}
	if bytes.HasSuffix(raw, []byte("\r")) {
		raw = append(raw, '\r') // a carriage return before the newline is not part of the line
	}
	now := t.box.utcNow()
	t.noticeGone()
	t.addLine(journal.Line{Kind: journal.Queue, Data: raw})
	if l.limited {
		t.noteRaised(entryID(bytes.TrimSuffix(raw, []byte("\r"))))
	}
	if err := t.mark(letterMark{l.Letter, l.EntryID, l.ID, l.Reason, LetterMark{RequeuedAt: &now}}); err != nil {
		return l, err
	}
	t.forgetLate(l.Letter)
	l.RequeuedAt = &now
	return l, t.addEvent(Event{Event: EventRequeued, EntryID: l.EntryID, ID: l.ID, Attempt: l.Attempts, Reason: "dead letter " + l.Letter})
}

// Purge removes dead letters, given by [Letter].Letter, with their marks and the
// files that hold their bytes, and returns those that existed. It is durable when
// it returns. A kill leaves all of them or none, except for those files. The
// letters that stay are copied without the lock.
func (b *Inbox) Purge(ctx context.Context, letters []Letter) (purged []Letter, warnings []string, err error) {
	gone, there := map[string]bool{}, map[string]bool{}
	for _, l := range letters {
		gone[l.Letter] = true
	}
	w := rewriting{box: b, kind: journal.DeadLetters, keep: func(line []byte) bool {
		l, mark, ok := ParseLetter(line)
		if !ok || !gone[l.Letter] {
			return true
		}
		if !mark {
			there[l.Letter] = true
		}
		return false
	}}
	w.with = func(t *Tx) error {
		purged = nil
		for _, l := range letters {
			if !there[l.Letter] {
				continue
			}
			purged = append(purged, l)
			t.forgetLate(l.Letter)
			if err := t.addEvent(Event{Event: EventPurged, EntryID: l.EntryID, ID: l.ID, Reason: "dead letter " + l.Letter}); err != nil {
				return err
			}
		}
		return nil
	}
	if warnings, err = w.run(ctx); err != nil {
		return nil, warnings, err
	}
	for _, l := range purged {
		// A requeued entry may still need its text.
		if spillName(l.RawFile) || textName(l.RawFile) && l.RequeuedAt == nil {
			if err := disk.Remove(b.beside(l.RawFile)); err != nil {
				return purged, warnings, err
			}
		}
	}
	return purged, warnings, nil
}
