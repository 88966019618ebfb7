package inbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// Trimming says what [Inbox.Trim] threw away.
type Trimming struct {
	Results     int `json:"results"`
	DeadLetters int `json:"dead_letters"` // that somebody dealt with
	Events      int `json:"events"`
	Costs       int `json:"costs"`
	// Freed is how many bytes on the disk were given back.
	Freed int64 `json:"freed_bytes"`
	// Warnings are sentences about what was found and repaired on the way.
	Warnings []string `json:"warnings,omitempty"`
}

// Trim removes the results, the dead letters that somebody dealt with, the events and the
// costs from before that time. A name whose result is gone can be sent once more. The files are
// copied without the lock.
func (b *Inbox) Trim(ctx context.Context, before time.Time) (n Trimming, err error) {
	if n.Warnings, err = b.makeGood(ctx); err != nil {
		return n, err
	}
	space, err := b.outcomeSpace()
	if err != nil {
		return n, err
	}
	rewrite := func(kind journal.Kind, keep func([]byte) bool) (int, error) {
		w := rewriting{box: b, kind: kind, keep: keep}
		warnings, err := w.run(ctx)
		n.Warnings = append(n.Warnings, warnings...)
		return w.dropped, err
	}
	gone, err := b.closedBefore(before)
	if err != nil {
		return n, err
	}
	n.DeadLetters = gone.letters
	if _, err = rewrite(journal.DeadLetters, gone.keep); err != nil {
		return n, err
	}
	if n.Results, err = rewrite(journal.Results, stampedSince(before, "acknowledged_at")); err != nil {
		return n, err
	}
	if n.Events, err = rewrite(journal.Events, stampedSince(before, "at")); err != nil {
		return n, err
	}
	if n.Costs, err = rewrite(journal.Costs, stampedSince(before, "at")); err != nil {
		return n, err
	}
	left, err := b.outcomeSpace()
	n.Freed = max(0, space-left)
	return n, err
}

// outcomeSpace is how much of the disk the files of outcomes take up.
func (b *Inbox) outcomeSpace() (space int64, err error) {
	for _, kind := range outcomeKinds {
		f, err := disk.OpenRead(b.fileOf(kind))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		space += f.Info().Space
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	return space, nil
}

// closedLetters names the letters that are to go, with their marks.
type closedLetters struct {
	names   map[uint64]bool // see spotName
	letters int             // how many of them exist
}

// closedBefore finds the letters that were dealt with before that time, and marks whose
// letter is gone.
func (b *Inbox) closedBefore(before time.Time) (gone closedLetters, err error) {
	gone.names = map[uint64]bool{}
	r := b.LetterReader()
	if _, err := r.Read(); err != nil {
		return gone, err
	}
	err = r.eachMarked(func(name uint64, there bool, m LetterMark) {
		at := cmp.Or(m.RequeuedAt, m.AcceptedAt)
		if !there {
			at = cmp.Or(at, m.RepliedAt)
		}
		if at == nil || !at.Before(before) {
			return
		}
		if gone.names[name] = true; there {
			gone.letters++
		}
	})
	return gone, err
}

func (g closedLetters) keep(line []byte) bool {
	if len(g.names) == 0 {
		return true
	}
	l := glance(line)
	return !l.ok || !g.names[spotName(l.letter)]
}

// stampedSince keeps the lines whose time is not before that one, and those
// without a time.
func stampedSince(before time.Time, member string) func([]byte) bool {
	return func(line []byte) bool {
		at, err := time.Parse(time.RFC3339, flat.Value(line).Get(member).Text())
		return err != nil || !at.Before(before) || !json.Valid(line)
	}
}
