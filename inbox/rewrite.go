package inbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"heartbeat/internal/disk"
)

// rewrite leaves out the lines of an append-only file that keep does not want,
// and returns how many those were. What the transaction holds is committed with
// it. It is durable when it returns; a kill leaves the old file or the new.
//
// The commit comes first, and raises the file's generation: the journal's older
// records then no longer vouch for their lines, which would come back otherwise.
// For the same reason the old file, and its name, are synced before.
func (t *Tx) rewrite(name string, keep func(line []byte) bool) (dropped int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("rewrite %s: %w", t.box.file(name), err)
		}
	}()
	file := t.appendFile(name)
	f, err := file.existing()
	if err != nil || f == nil {
		return 0, errors.Join(err, t.Commit())
	}
	before, err := f.ReadAll()
	if err != nil {
		return 0, err
	}
	after := make([]byte, 0, len(before))
	for l := range bytes.Lines(before) {
		if keep(bytes.TrimRight(l, "\r\n")) {
			after = append(after, l...)
		} else {
			dropped++
		}
	}
	if dropped == 0 {
		// Whoever did it before may have been killed before this.
		return 0, errors.Join(disk.SyncDir(t.box.dir), t.Commit())
	}
	if err := errors.Join(f.Sync(), disk.SyncDir(t.box.dir)); err != nil {
		return 0, err
	}
	_, generation := t.st.appendPoint(name)
	*generation++
	t.dirty = true
	if err := t.Commit(); err != nil {
		return 0, err
	}
	return dropped, errors.Join(file.close(), disk.Publish(file.path, after, true))
}

// Trimming says what [Inbox.Trim] threw away.
type Trimming struct {
	Results     int `json:"results"`
	DeadLetters int `json:"dead_letters"` // requeued ones
	Events      int `json:"events"`
	// Freed is how many bytes on the disk that gave back.
	Freed int64 `json:"freed_bytes"`
	// Warnings are sentences about what was found and mended besides.
	Warnings []string `json:"warnings,omitempty"`
}

// Trim throws away the results, the requeued dead letters and the events from
// before that time. A name whose result is gone may be sent once more.
func (b *Inbox) Trim(ctx context.Context, before time.Time) (n Trimming, err error) {
	t, err := b.Begin(ctx)
	if err != nil {
		return n, err
	}
	defer func() {
		n.Warnings = t.Warnings()
		err = errors.Join(err, t.Close())
	}()
	space, err := b.outcomeSpace()
	if err != nil {
		return n, err
	}
	if n.DeadLetters, err = t.trimLetters(before); err != nil {
		return n, err
	}
	if n.Results, err = t.rewrite(resultsName, stampedSince(before, "acknowledged_at")); err != nil {
		return n, err
	}
	if n.Events, err = t.rewrite(eventsName, stampedSince(before, "at")); err != nil {
		return n, err
	}
	left, err := b.outcomeSpace()
	n.Freed = max(0, space-left)
	return n, err
}

// outcomeSpace is what the files that Trim is about take on the disk.
func (b *Inbox) outcomeSpace() (space int64, err error) {
	for _, name := range []string{deadLetterName, resultsName, eventsName} {
		f, err := disk.OpenRead(b.file(name))
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

// trimLetters leaves out the letters that were requeued before that time, with
// their marks, and returns how many letters those were.
func (t *Tx) trimLetters(before time.Time) (int, error) {
	letters, _, err := t.box.Letters()
	if err != nil {
		return 0, err
	}
	gone := map[string]bool{}
	for _, l := range letters {
		if l.RequeuedAt != nil && l.RequeuedAt.Before(before) {
			gone[l.Letter] = true
		}
	}
	_, err = t.rewrite(deadLetterName, func(line []byte) bool {
		l, mark, ok := ParseLetter(line)
		return !ok || !gone[l.Letter] && !(mark && l.RequeuedAt.Before(before))
	})
	return len(gone), err
}

// stampedSince keeps the lines whose time is not before that one, and those that
// have none.
func stampedSince(before time.Time, member string) func([]byte) bool {
	return func(line []byte) bool {
		var stamps map[string]json.RawMessage
		var at time.Time
		if json.Unmarshal(line, &stamps) != nil || json.Unmarshal(stamps[member], &at) != nil {
			return true
		}
		return !at.Before(before)
	}
}
