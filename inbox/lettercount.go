package inbox

import (
	"context"
	"encoding/json"
	"errors"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// LetterCount is how many dead letters nobody has dealt with, by their reasons.
type LetterCount struct {
	Open     map[Reason]int
	Warnings []string // about lines that are not valid
}

// All is the sum.
func (c LetterCount) All() (n int) {
	for _, of := range c.Open {
		n += of
	}
	return n
}

// keptCount is a count that a record keeps. It is of the file up to an offset, and counts
// only while the file is the same and has at most grown.
type keptCount struct {
	journal.Seen
	Open  map[Reason]int `json:"open"`
	Notes letterNotes    `json:"notes"`
}

const (
	// countSpan is how much may be read again at each count. Of more, the count is kept.
	countSpan = 1 << 20
	// maxKeptCount bounds what each record has of it: somebody may write any reasons.
	maxKeptCount = 1 << 10
)

// CountLetters counts the open dead letters. Where there are many it keeps the count, in a
// commit if the lock is free, and the next one reads only what came since.
func (b *Inbox) CountLetters(ctx context.Context) (LetterCount, error) {
	var record json.RawMessage
	if v, err := b.View(); err == nil { // without the state all are counted
		record = v.tx.st.Letters
		if err := v.Close(); err != nil {
			return LetterCount{}, err
		}
	}
	r := b.LetterReader()
	open, read, err := r.count(record)
	if err == nil && read > countSpan && r.seen.Off == r.seen.Size && b.Lock() == 0 {
		_ = r.keep(ctx, open) // best effort: else the next one counts again
	}
	return LetterCount{open, r.warnings()}, err
}

// count counts, from what a record keeps if that is of this file. read is how much it read.
func (r *LetterReader) count(record json.RawMessage) (open map[Reason]int, read int64, err error) {
	open = map[Reason]int{}
	var kept keptCount
	exact := len(record) > 0 && json.Unmarshal(record, &kept) == nil && kept.Open != nil
	if exact {
		open, r.notes, r.seen, r.seen.Size = kept.Open, kept.Notes, kept.Seen, kept.Off
	}
	anew := r.anew
	err = r.advanceWith(nil, func(l letterLine) {
		switch {
		case !l.ok:
		case !l.mark:
			open[l.reason]++
		case l.closes:
			open[l.reason]--
			exact = exact && l.reason != "" && open[l.reason] >= 0
		}
	})
	switch {
	case err != nil || exact && r.anew == anew:
		return open, r.seen.Size - kept.Off, err
	case r.anew == anew: // only what came since was read
		r.forget()
		err = r.advance(nil)
	}
	return r.tally(), r.seen.Size, err
}

// tally counts the letters that were read.
func (r *LetterReader) tally() map[Reason]int {
	open := map[Reason]int{}
	r.sort()
	for from, to := 0, 0; from < len(r.spots); from = to {
		closed := false
		for to = from; to < len(r.spots) && r.spots[to].name == r.spots[from].name; to++ {
			closed = closed || r.spots[to].mark() && r.spots[to].kind() > 0
		}
		if !closed && !r.spots[from].mark() {
			open[r.reasons[r.spots[from].kind()]]++
		}
	}
	return open
}

// keep makes the count a part of the record.
func (r *LetterReader) keep(ctx context.Context, open map[Reason]int) error {
	record, err := flat.JSON(keptCount{r.seen, open, r.notes})
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
