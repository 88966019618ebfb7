package outcomes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// Purge removes dead letters, given by [inbox.Letter].Letter, with their marks and the files that hold their bytes,
// and returns those that existed. It is durable when it returns. A kill leaves all of the letters or none,
// but perhaps some of those files. The letters that stay are copied without the lock.
func Purge(ctx context.Context, b *inbox.Inbox, letters []inbox.Letter) (purged []inbox.Letter, warnings []string, err error) {
	gone, there := map[string]bool{}, map[string]bool{}
	for _, l := range letters {
		gone[l.Letter] = true
	}
	w := rewriting{box: b, kind: journal.DeadLetters, keep: func(line []byte) bool {
		l, mark, ok := inbox.ParseLetter(line)
		if !ok || !gone[l.Letter] {
			return true
		}
		if !mark {
			there[l.Letter] = true
		}
		return false
	}}
	w.purged = func() []inbox.Letter {
		purged = slices.DeleteFunc(slices.Clone(letters), func(l inbox.Letter) bool { return !there[l.Letter] })
		return purged
	}
	if warnings, err = w.run(ctx); err != nil {
		return nil, warnings, err
	}
	for _, l := range purged {
		if file := l.OwnFile(); file != "" {
			if err := disk.Remove(filepath.Join(b.Dir(), file)); err != nil {
				return purged, warnings, err
			}
		}
	}
	return purged, warnings, nil
}

// letterLine is what a quick look tells about a line of .dead-letter.jsonl: a letter, or a mark on one.
type letterLine struct {
	name     string
	id       string    // the id that the sender gave a letter's entry
	at       time.Time // when a letter was set aside
	reason   inbox.Reason
	streamed bool // see [inbox.StreamMember]
	mark, ok bool
	inbox.LetterMark
}

// glance is [inbox.ParseLetter] in a fraction of the time for lines that heartbeat wrote, as nearly all are.
func glance(l []byte) letterLine {
	var m *flat.Members
	if bytes.HasPrefix(l, []byte(`{"entry_id":"`)) {
		m, _ = flat.Parse(l)
	}
	if m != nil {
		d := inbox.DeadLetter{
			EntryID: m.String("entry_id"), ID: m.String("id"), StartOffset: m.Int("start_offset"),
			Reason: inbox.Reason(m.String("reason")), DeadLetteredAt: m.Time("dead_lettered_at"),
		}
		if m.Err() == nil && d.EntryID != "" && d.Reason != "" && !d.DeadLetteredAt.IsZero() {
			return letterLine{
				name: inbox.LetterName(d), id: d.ID, at: d.DeadLetteredAt, ok: true, reason: d.Reason,
				streamed: m.Value("metadata").Get(inbox.StreamMember, "stream") != "",
			}
		}
	}
	letter, isMark, ok := inbox.ParseLetter(l)
	return letterLine{
		name: letter.Letter, id: letter.ID, at: letter.DeadLetteredAt, reason: letter.Reason, ok: ok, mark: isMark,
		streamed: flat.Value(letter.Metadata[inbox.StreamMember]).Get("stream") != "", LetterMark: letter.LetterMark,
	}
}

// EachLetter visits each dead letter once, oldest first, until visit returns false. It takes no lock. Invalid
// lines give warnings.
func EachLetter(b *inbox.Inbox, visit func(inbox.Letter) bool) (warnings []string, err error) {
	r := NewLetterReader(b)
	if warnings, err = r.Read(); err != nil {
		return nil, err
	}
	return warnings, r.Each(visit)
}

// EachOpenLetter is [EachLetter] for open letters: see [LetterCount].
func EachOpenLetter(b *inbox.Inbox, visit func(inbox.Letter) bool) (warnings []string, err error) {
	r, warnings, err := openLetters(b)
	if err != nil {
		return warnings, err
	}
	return warnings, r.Each(func(l inbox.Letter) bool { return !r.letters[sumOf(l.Letter)].isOpen() || visit(l) })
}

// OpenLetters returns a function that reports whether the letter of that name is open: see [LetterCount].
func OpenLetters(b *inbox.Inbox) (func(name string) bool, error) {
	r, _, err := openLetters(b)
	return func(name string) bool { return r.letters[sumOf(name)].isOpen() }, err
}

func lettersError(err error) error {
	if err == nil || errors.Is(err, inbox.ErrMore) {
		return err
	}
	return fmt.Errorf("read dead letters: %w", err)
}
