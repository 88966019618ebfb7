package outcomes

import (
	"errors"
	"io"
	"maps"
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
	_, open, warnings, err := openLetters(b)
	c := LetterCount{Open: map[inbox.Reason]int{}, Warnings: warnings}
	for _, l := range open {
		if !l.streamed {
			c.Open[l.reason]++
		}
	}
	return c, err
}

// openLetters reads all letters, and returns the open ones by name: see [LetterCount].
func openLetters(b *inbox.Inbox) (r *LetterReader, open map[string]*letterLine, warnings []string, err error) {
	r = NewLetterReader(b)
	if warnings, err = r.Read(); err != nil {
		return r, nil, nil, err
	}
	open = r.unclosed()
	answered, err := r.answered(open, time.Time{})
	maps.DeleteFunc(open, func(name string, _ *letterLine) bool { return answered[name] })
	return r, open, warnings, err
}

// unclosed returns the letters that no mark closes and that were not canceled.
func (r *LetterReader) unclosed() map[string]*letterLine {
	all := maps.Clone(r.letters)
	maps.DeleteFunc(all, func(_ string, l *letterLine) bool { return l.mark || !l.Open() || l.reason == inbox.ReasonCanceled })
	return all
}

// answered returns the names of those letters whose id was answered after they were set aside: their senders sent
// them again. Unless before is zero, only answers before that time count. It reads the results from about the time of
// the first letter with an id.
func (r *LetterReader) answered(all map[string]*letterLine, before time.Time) (answered map[string]bool, err error) {
	answered = map[string]bool{}
	byID, first := map[string][]*letterLine{}, time.Time{}
	for _, l := range all {
		if l.id == "" {
			continue
		}
		if len(byID) == 0 || l.at.Before(first) {
			first = l.at
		}
		byID[l.id] = append(byID[l.id], l)
	}
	if len(byID) == 0 {
		return answered, nil
	}
	results, err := journal.OpenState(fileOf(r.box, journal.Results))
	if results == nil || err != nil {
		return answered, err
	}
	defer func() { err = errors.Join(err, results.Close()) }()
	from, err := resultsFrom(results, first)
	if err != nil {
		return answered, err
	}
	err = lines.EachOwn(io.NewSectionReader(results, from, results.Info().Size-from), from, func(_, _ int64, line []byte, _ bool) bool {
		for _, l := range byID[flat.Value(line).Get("id").Shown()] {
			when := acknowledged(line)
			if !when.Before(l.at) && (before.IsZero() || when.Before(before)) {
				answered[l.name] = true
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
