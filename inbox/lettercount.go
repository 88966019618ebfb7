package inbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// LetterCount counts the open dead letters by reason: letters that were not requeued, accepted or canceled,
// and whose id was not answered since.
type LetterCount struct {
	Open     map[Reason]int
	Warnings []string // about invalid lines
}

// All returns the sum.
func (c LetterCount) All() (n int) {
	for _, of := range c.Open {
		n += of
	}
	return n
}

// keptCount is the count that a record keeps. It covers the file up to an offset, and holds only while the
// file has at most grown. If some letters have ids, it also holds only until the next result.
type keptCount struct {
	journal.Seen
	Open    map[Reason]int `json:"open"`
	Notes   letterNotes    `json:"notes"`
	Named   bool           `json:"named,omitempty"` // some of the letters have ids
	Results *journal.Seen  `json:"results"`         // the end of the results at the count
}

const (
	// countSpan is how much may be read again at each count. Beyond it the count is kept.
	countSpan = 1 << 20
	// maxKeptCount bounds the count in a record, since a line may have any reason.
	maxKeptCount = 1 << 10
)

// CountLetters counts the open dead letters. If there are many, it keeps the count in a commit, provided that
// the lock is free; the next call then reads only what is new.
func (b *Inbox) CountLetters(ctx context.Context) (LetterCount, error) {
	var record json.RawMessage
	if v, err := b.View(); err == nil { // without the state, count from the start
		record = v.tx.st.Letters
		if err := v.Close(); err != nil {
			return LetterCount{}, err
		}
	}
	r := b.LetterReader()
	now, read, err := r.count(record)
	if err == nil && read > countSpan && r.seen.Off == r.seen.Size && b.mayNote() {
		_ = r.keep(ctx, now) // best effort: otherwise the next call counts again
	}
	return LetterCount{now.Open, r.warnings()}, err
}

// count continues from the count in record, if that belongs to this file. read is how many bytes it read.
func (r *LetterReader) count(record json.RawMessage) (now keptCount, read int64, err error) {
	results, err := journal.EndOf(r.box.fileOf(journal.Results))
	if err != nil {
		return now, 0, err
	}
	var kept keptCount
	exact := len(record) > 0 && json.Unmarshal(record, &kept) == nil && kept.Open != nil && kept.Results != nil
	if exact {
		now = kept
		r.notes, r.seen, r.seen.Size = kept.Notes, kept.Seen, kept.Off
		exact = !kept.Named || kept.Results.File == results.File && kept.Results.Off == results.Off
	} else {
		now.Open = map[Reason]int{}
	}
	now.Results = &results
	anew := r.anew
	err = r.advance(nil, func(l letterLine) {
		now.Named = now.Named || l.ok && !l.mark && l.id != ""
		switch {
		case !l.ok || l.reason == ReasonCanceled:
		case !l.mark:
			now.Open[l.reason]++
		case l.closes: // letters answered since were not counted
			now.Open[l.reason]--
			exact = exact && l.reason != "" && now.Open[l.reason] >= 0 && !kept.Named
		}
	})
	switch {
	case err != nil || exact && r.anew == anew:
		return now, r.seen.Size - kept.Off, err
	case r.anew == anew: // only the new lines were read
		r.forget()
		err = r.advance(nil, nil)
	}
	if err == nil {
		now.Open, err = r.tally()
	}
	return now, r.seen.Size, err
}

// tally counts the letters that were read.
func (r *LetterReader) tally() (map[Reason]int, error) {
	all, err := r.open()
	open := map[Reason]int{}
	for _, s := range all {
		open[r.reasons[s.kind()]]++
	}
	return open, err
}

// open returns the open letters that were read, sorted by name: see [LetterCount].
func (r *LetterReader) open() ([]spot, error) {
	all := r.unclosed()
	answered, err := r.answered(all, time.Time{})
	return slices.DeleteFunc(all, func(s spot) bool { return answered[s] }), err
}

// unclosed returns the letters that no mark closes and that were not canceled.
func (r *LetterReader) unclosed() (all []spot) {
	r.sort()
	for from, to := 0, 0; from < len(r.spots); from = to {
		closed := false
		for to = from; to < len(r.spots) && r.spots[to].name == r.spots[from].name; to++ {
			closed = closed || r.spots[to].mark() && r.spots[to].kind() > 0
		}
		if first := r.spots[from]; !closed && !first.mark() && r.reasons[first.kind()] != ReasonCanceled {
			all = append(all, first)
		}
	}
	return all
}

// among reports whether all, sorted by name, has a letter of that name.
func among(all []spot, name uint64) bool {
	_, is := slices.BinarySearchFunc(all, name, func(s spot, name uint64) int { return cmp.Compare(s.name, name) })
	return is
}

// answered returns the letters whose id was answered after they were set aside: their senders sent them
// again. Unless before is zero, only answers before that time count. It reads the results from about the time
// of the first letter with an id.
func (r *LetterReader) answered(all []spot, before time.Time) (answered map[spot]bool, err error) {
	named := slices.DeleteFunc(slices.Clone(all), func(s spot) bool { return s.id == 0 })
	if len(named) == 0 {
		return nil, nil
	}
	letters, err := journal.OpenState(r.box.fileOf(journal.DeadLetters))
	if letters == nil || err != nil {
		return nil, lettersError(err)
	}
	defer func() { err = errors.Join(err, letters.Close()) }()
	results, err := journal.OpenState(r.box.fileOf(journal.Results))
	if results == nil || err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, results.Close()) }()
	at := func(s spot) (d Letter) {
		if line, err := lineOf(letters, s.off()); err == nil {
			d, _, _ = ParseLetter(line)
		}
		return d
	}
	first := slices.MinFunc(named, func(a, b spot) int { return cmp.Compare(a.off(), b.off()) })
	from, err := resultsFrom(results, at(first).DeadLetteredAt)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(named, func(a, b spot) int { return cmp.Compare(a.id, b.id) })
	answered = map[spot]bool{}
	err = lines.EachOwn(io.NewSectionReader(results, from, results.Info().Size-from), from, func(_, _ int64, l []byte, _ bool) bool {
		id := flat.Value(l).Get("id").Shown()
		i, known := slices.BinarySearchFunc(named, spotID(id), func(s spot, id uint64) int { return cmp.Compare(s.id, id) })
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

// keep puts the count into the record.
func (r *LetterReader) keep(ctx context.Context, now keptCount) error {
	now.Seen, now.Notes = r.seen, r.notes
	record, err := flat.JSON(now)
	if err != nil || len(record) > maxKeptCount {
		return err
	}
	t, err := r.box.Begin(ctx)
	if err != nil {
		return err
	}
	t.st.Letters, t.dirty = record, true
	return errors.Join(t.Commit(), t.Close())
}
