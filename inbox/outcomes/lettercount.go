package outcomes

import (
	"cmp"
	"errors"
	"io"
	"slices"
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
	r, open, warnings, err := openLetters(b)
	c := LetterCount{Open: map[inbox.Reason]int{}, Warnings: warnings}
	for _, s := range open {
		if !s.streamed {
			c.Open[r.reasons[s.reason]]++
		}
	}
	return c, err
}

// openLetters reads all letters, and returns the open ones sorted by name: see [LetterCount].
func openLetters(b *inbox.Inbox) (r *LetterReader, open []spot, warnings []string, err error) {
	r = NewLetterReader(b)
	if warnings, err = r.Read(); err != nil {
		return r, nil, nil, err
	}
	open = r.unclosed()
	answered, err := r.answered(open, time.Time{})
	return r, slices.DeleteFunc(open, func(s spot) bool { return answered[s] }), warnings, err
}

// unclosed returns the letters that no mark closes and that were not canceled, sorted by name.
func (r *LetterReader) unclosed() []spot {
	all := make([]spot, 0, len(r.spots))
	for same := range r.byName() {
		closed := slices.ContainsFunc(same, func(s spot) bool { return s.closes })
		if first := same[0]; !closed && !first.mark && r.reasons[first.reason] != inbox.ReasonCanceled {
			all = append(all, first)
		}
	}
	return all
}

// among reports whether all, sorted by name, has a letter of that name.
func among(all []spot, name string) bool {
	_, is := slices.BinarySearchFunc(all, spotName(name), func(s spot, name uint64) int { return cmp.Compare(s.name, name) })
	return is
}

// answered returns the letters whose id was answered after they were set aside: their senders sent them
// again. Unless before is zero, only answers before that time count. It reads the results from about the time
// of the first letter with an id.
func (r *LetterReader) answered(all []spot, before time.Time) (answered map[spot]bool, err error) {
	// A copy of them would take as much memory again.
	slices.SortFunc(all, func(a, b spot) int { return cmp.Compare(a.id, b.id) })
	defer slices.SortFunc(all, bySpot)
	named := all
	for len(named) > 0 && named[0].id == 0 {
		named = named[1:]
	}
	if len(named) == 0 {
		return nil, nil
	}
	letters, err := journal.OpenState(fileOf(r.box, journal.DeadLetters))
	if letters == nil || err != nil {
		return nil, lettersError(err)
	}
	defer func() { err = errors.Join(err, letters.Close()) }()
	results, err := journal.OpenState(fileOf(r.box, journal.Results))
	if results == nil || err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, results.Close()) }()
	at := func(s spot) (d inbox.Letter) {
		if line, err := lineOf(letters, s.off); err == nil {
			d, _, _ = inbox.ParseLetter(line)
		}
		return d
	}
	first := slices.MinFunc(named, func(a, b spot) int { return cmp.Compare(a.off, b.off) })
	from, err := resultsFrom(results, at(first).DeadLetteredAt)
	if err != nil {
		return nil, err
	}
	answered = map[spot]bool{}
	err = lines.EachOwn(io.NewSectionReader(results, from, results.Info().Size-from), from, func(_, _ int64, l []byte, _ bool) bool {
		id := flat.Value(l).Get("id").Shown()
		i, known := slices.BinarySearchFunc(named, spotID(id), func(s spot, id uint32) int { return cmp.Compare(s.id, id) })
		when := acknowledged(l)
		known = known && (before.IsZero() || when.Before(before))
		for ; known && id != "" && i < len(named) && named[i].id == spotID(id); i++ {
			if d := at(named[i]); !answered[named[i]] && d.ID == id && !when.Before(d.DeadLetteredAt) {
				answered[named[i]] = true
			}
		}
		return true
	})
	return answered, err
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
