package outcomes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// Purge removes dead letters, given by [inbox.Letter].Letter, with their marks and the files that hold their bytes, and
// returns those that existed. The removal is durable when Purge returns. A kill leaves all of the letters or none, but
// perhaps some of those files. The letters that stay are copied without the lock.
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

// letterLine is what glance reads of a line of .dead-letter.jsonl: a letter, or a mark on one.
type letterLine struct {
	name     string
	id       string    // the id that the sender gave a letter's entry
	at       time.Time // when a letter was set aside
	reason   inbox.Reason
	streamed bool // see [inbox.StreamMember]
	mark, ok bool
	inbox.LetterMark
}

// glance reads a line as [inbox.ParseLetter] does, in a fraction of the time if heartbeat wrote the line.
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

// LetterCount counts the open dead letters by reason: letters that were not requeued, accepted or canceled,
// and whose id was not answered since. Those with [StreamMember] are left out.
type LetterCount struct {
	Open     map[inbox.Reason]int
	Warnings []string // about invalid lines
}

// All returns the number of open letters.
func (c LetterCount) All() (n int) {
	for _, of := range c.Open {
		n += of
	}
	return n
}

// CountLetters counts the open dead letters.
func CountLetters(b *inbox.Inbox) (LetterCount, error) {
	r, warnings, err := openLetters(b)
	c := LetterCount{Open: map[inbox.Reason]int{}, Warnings: warnings}
	for _, l := range r.letters {
		if l.isOpen() && !l.streamed {
			c.Open[r.reasons[l.reason]]++
		}
	}
	return c, err
}

// openLetters reads all letters, and determines which are open: see [LetterCount].
func openLetters(b *inbox.Inbox) (r *LetterReader, warnings []string, err error) {
	r = NewLetterReader(b)
	if warnings, err = r.Read(); err != nil {
		return r, nil, err
	}
	return r, warnings, r.findAnswered(time.Time{})
}

// isOpen reports whether this is an open letter. Call [LetterReader.findAnswered] first.
func (l known) isOpen() bool {
	return l.letter != 0 && l.requeued == 0 && l.accepted == 0 && !l.canceled && !l.answered
}

// findAnswered notes which letters were answered by their id after they were set aside: their senders sent them again.
// Unless before is zero, only answers before that time count. It reads the results from about the time of the first
// letter with an id.
func (r *LetterReader) findAnswered(before time.Time) error {
	last, first := map[uint64]moment{}, moment(math.MaxInt64) // last is when each id was answered last
	for _, l := range r.letters {
		if l.id != 0 && l.isOpen() {
			first, last[l.id] = min(first, l.at), noMoment
		}
	}
	if len(last) == 0 {
		return nil
	}
	err := journal.Reading(fileOf(r.box, journal.Results), func(results *disk.File) error {
		from, err := resultsFrom(results, time.Unix(0, int64(first)))
		if err != nil {
			return err
		}
		return lines.EachOwn(io.NewSectionReader(results, from, results.Info().Size-from), from, func(_, _ int64, line []byte, _ bool) bool {
			id := sumOf(flat.Value(line).Get("id").Shown())
			if was, wanted := last[id]; wanted {
				if at := acknowledged(line); before.IsZero() || at.Before(before) {
					last[id] = max(was, momentOf(at))
				}
			}
			return true
		})
	})
	for name, l := range r.letters {
		if at, wanted := last[l.id]; wanted && at != noMoment && at >= l.at && l.isOpen() {
			l.answered = true
			r.letters[name] = l
		}
	}
	return err
}

// resultsFrom returns an offset at or before the first result of that time or later. Results are in order of
// time, unless the clock was set.
func resultsFrom(f *disk.File, since time.Time) (from int64, err error) {
	for n := 64; ; n *= 4 {
		if from, err = lines.Back(f, f.Info().Size, n); err != nil || from == 0 {
			return from, err
		}
		line, err := lineOf(f, from)
		if err != nil || acknowledged(line).Before(since) {
			return from, err
		}
	}
}

// acknowledged returns a result's time, zero if it has none.
func acknowledged(result []byte) time.Time {
	at, _ := time.Parse(time.RFC3339, flat.Value(result).Get("acknowledged_at").Text())
	return at
}
