package outcomes

import (
	"io"
	"math"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// LetterCount counts the open dead letters by reason: letters that were not requeued, accepted or canceled,
// and whose id was not answered since. Those with [StreamMember] are left out.
type LetterCount struct {
	Open     map[inbox.Reason]int
	Warnings []string // about invalid lines
}

// All returns the sum.
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

// openLetters reads all letters, and finds out which are open: see [LetterCount].
func openLetters(b *inbox.Inbox) (r *LetterReader, warnings []string, err error) {
	r = NewLetterReader(b)
	if warnings, err = r.Read(); err != nil {
		return r, nil, err
	}
	return r, warnings, r.findAnswered(time.Time{})
}

// isOpen reports whether this is an open letter, once [LetterReader.findAnswered] has looked.
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
