package outcomes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// Trimming says what [Trim] removed.
type Trimming struct {
	Results     int      `json:"results"`
	DeadLetters int      `json:"dead_letters"`
	Events      int      `json:"events"`
	Costs       int      `json:"costs"`
	Freed       int64    `json:"freed_bytes"`
	Warnings    []string `json:"warnings,omitempty"`
}

// Trim removes results, closed dead letters, events and costs from before the given time. It keeps lines that
// a consumer has yet to be handed, and lines that arrive during the call. Once a result is gone, its id can
// be sent again. The files are copied without the lock.
func Trim(ctx context.Context, b *inbox.Inbox, before time.Time) (n Trimming, err error) {
	began := now(b)
	if n.Warnings, err = b.MakeGood(ctx); err != nil {
		return n, err
	}
	space, err := spaceOf(b)
	if err != nil {
		return n, err
	}
	rewrite := func(kind journal.Kind, keep func([]byte) bool) (int, error) {
		held := holding{box: b, kind: kind, wanted: keep}
		w := rewriting{box: b, kind: kind, keep: held.keep, held: &held}
		warnings, err := w.run(ctx)
		n.Warnings = append(append(n.Warnings, warnings...), held.notes()...)
		return min(held.removed, w.dropped), err // none if the file vanished
	}
	gone, err := closedBefore(b, before)
	if err != nil {
		return n, err
	}
	n.DeadLetters, err = rewrite(journal.DeadLetters, func(line []byte) bool {
		return len(gone) == 0 || !gone[sumOf(glance(line).name)]
	})
	if err != nil {
		return n, err
	}
	counts := []*int{&n.Results, &n.Events, &n.Costs}
	for i, kind := range []journal.Kind{journal.Results, journal.Events, journal.Costs} {
		*counts[i], err = rewrite(kind, func(line []byte) bool {
			l := flat.Value(line)
			at, err := time.Parse(time.RFC3339, cmp.Or(l.Get("acknowledged_at").Text(), l.Get("at").Text()))
			comes := at.After(began) && !at.After(now(b)) // nobody may have seen it
			return err != nil || comes || !at.Before(before) || !json.Valid(line)
		})
		if err != nil {
			return n, err
		}
	}
	left, err := spaceOf(b)
	n.Freed = max(0, space-left)
	return n, err
}

func spaceOf(b *inbox.Inbox) (space int64, err error) {
	for _, kind := range journal.OutcomeKinds {
		info, err := disk.StatName(fileOf(b, kind))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		space += info.Space
	}
	return space, nil
}

// closedBefore names the letters that were closed before that time, and that are to go together with their
// marks, and marks without a letter. A letter whose entry was answered since is trimmed along with that result,
// because without the result it would count as open again.
func closedBefore(b *inbox.Inbox, before time.Time) (gone map[uint64]bool, err error) {
	r := NewLetterReader(b)
	if _, err := r.Read(); err != nil {
		return nil, err
	}
	if err := r.findAnswered(before); err != nil {
		return nil, err
	}
	gone = map[uint64]bool{}
	return gone, r.reading(func(f *disk.File) error {
		for name, l := range r.letters {
			m, err := l.marks(f)
			if err != nil {
				return err
			}
			at := cmp.Or(m.RequeuedAt, m.AcceptedAt)
			if l.letter == 0 {
				at = cmp.Or(at, m.RepliedAt)
			}
			if l.answered || at != nil && at.Before(before) {
				gone[name] = true
			}
		}
		return nil
	})
}
