package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"heartbeat/internal/disk"
)

// Letter is a dead letter as the file has it, and what became of it since.
type Letter struct {
	// Letter names this very letter among all, in 12 hex digits: an entry may
	// have become one more than once.
	Letter string `json:"letter"`
	DeadLetter
	// RequeuedAt is when its bytes were appended to the inbox again.
	RequeuedAt *time.Time `json:"requeued_at,omitempty"`
}

// requeueMark is the line of .dead-letter.jsonl that says that a letter of an
// earlier line is back in the inbox.
type requeueMark struct {
	Letter     string    `json:"letter"`
	EntryID    string    `json:"entry_id"`
	ID         string    `json:"id,omitempty"`
	RequeuedAt time.Time `json:"requeued_at"`
}

// letterName does not depend on how the line is written, so that an editor's
// other spelling of it keeps the marks right.
func letterName(d DeadLetter) string {
	return entryID(fmt.Appendf(nil, "%s %d %d", d.EntryID, d.StartOffset, d.DeadLetteredAt.UnixNano()))[:12]
}

// Letters reads the dead letters, the oldest first, each once. It takes no lock.
// Lines that are none are told of as warnings.
func (b *Inbox) Letters() (all []Letter, warnings []string, err error) {
	f, err := disk.OpenRead(b.file(deadLetterName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read dead letters: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	at, lines := map[string]int{}, 0
	err = eachLine(io.NewSectionReader(f, 0, f.Info().Size), 0, func(_, _ int64, l []byte, whole bool) bool {
		lines++
		letter, mark, ok := ParseLetter(l)
		switch {
		case len(bytes.TrimSpace(l)) == 0:
		case !ok && !whole:
			warnings = append(warnings, fmt.Sprintf("%s ends amid line %d: it is left out until it is whole", f.Path(), lines))
		case !ok:
			warnings = append(warnings, fmt.Sprintf("%s, line %d: it is no dead letter: it is left alone", f.Path(), lines))
		case mark:
			if i, known := at[letter.Letter]; known {
				all[i].RequeuedAt = letter.RequeuedAt
			}
		default:
			if _, known := at[letter.Letter]; !known {
				at[letter.Letter] = len(all)
				all = append(all, letter)
			}
		}
		return true
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read dead letters: %w", err)
	}
	return all, warnings, nil
}

// ParseLetter reads a line of .dead-letter.jsonl: a dead letter, or the mark that
// says when an earlier one was requeued.
func ParseLetter(l []byte) (letter Letter, mark, ok bool) {
	if json.Unmarshal(l, &letter) != nil || letter.EntryID == "" {
		return Letter{}, false, false
	}
	if letter.Reason == "" && letter.RequeuedAt != nil && letter.Letter != "" {
		return letter, true, true
	}
	letter.Letter, letter.RequeuedAt = letterName(letter.DeadLetter), nil
	return letter, false, true
}

// Requeue appends the letter's original bytes to the inbox again, and marks the
// letter, both with the next commit: commit before the next call. The letter
// must be one of [Inbox.Letters] in this transaction.
func (t *Tx) Requeue(l Letter) error {
	switch {
	case l.RequeuedAt != nil:
		return fmt.Errorf("requeue %s: it was requeued at %s", l.Letter, l.RequeuedAt.Format(time.RFC3339))
	case l.Reason == ReasonTooLong, l.Reason == ReasonEmpty:
		return fmt.Errorf("requeue %s: it is %s, and would be set aside again: send what it should have been", l.Letter, l.Reason)
	}
	raw, err := l.RawLine.Bytes()
	if err != nil {
		return fmt.Errorf("requeue %s: %w", l.Letter, err)
	}
	switch e := decodeEntry(raw); {
	case bytes.ContainsAny(raw, "\n") || len(bytes.TrimSpace(raw)) == 0:
		return fmt.Errorf("requeue %s: its raw_line is not one line of text: mend it in %s, or purge it", l.Letter, t.box.file(deadLetterName))
	case e.expired(t.box.opts.Now()):
		return fmt.Errorf("requeue %s: it expired at %s, and would be set aside again: send it anew", l.Letter, e.time(expiresMember).Format(time.RFC3339))
	}
	if writing, err := t.beingWritten(); err != nil {
		return err
	} else if writing {
		return fmt.Errorf("requeue %s: %w: try again when it is whole", l.Letter, ErrTorn)
	}
	now := t.box.utcNow()
	mark, err := encodeJSON(requeueMark{l.Letter, l.EntryID, l.ID, now})
	if err != nil {
		return err
	}
	t.noticeGone()
	t.appendRecord(appendRecord{File: queueName, Data: raw})
	t.append(deadLetterName, mark)
	return t.event(Event{Event: EventRequeued, EntryID: l.EntryID, ID: l.ID, Attempt: l.Attempts, Reason: "dead letter " + l.Letter})
}

// Refresh looks at the queue file again, after a commit that appended to it.
func (t *Tx) Refresh() error { return t.openFile() }

// Purge throws dead letters away, given by [Letter].Letter, with their marks and
// the files that hold their bytes. It commits by itself, and is durable when it
// returns; a kill leaves all of them or none, but for those files.
func (t *Tx) Purge(letters []Letter) error {
	gone := map[string]bool{}
	for _, l := range letters {
		gone[l.Letter] = true
		if err := t.event(Event{Event: EventPurged, EntryID: l.EntryID, ID: l.ID, Reason: "dead letter " + l.Letter}); err != nil {
			return err
		}
	}
	_, err := t.rewrite(deadLetterName, func(line []byte) bool {
		l, _, ok := ParseLetter(line)
		return !ok || !gone[l.Letter]
	})
	if err != nil {
		return err
	}
	for _, l := range letters {
		if l.RawFile != "" && spillName(l.RawFile) {
			if err := disk.Remove(t.box.file(l.RawFile)); err != nil {
				return err
			}
		}
	}
	return nil
}
