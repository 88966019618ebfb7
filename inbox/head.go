package inbox

import (
	"context"
	"os"
	"strconv"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// Head is the next entry, and since when it waits.
type Head struct {
	At Place
	// Since is when the entry came, according to its own line. Otherwise it is a time at which the entry was
	// already there, so that it may have waited for longer.
	Since time.Time
	// Noted says that later appends will not change Since.
	Noted bool
}

// Head returns the next entry, nil for none.
func (v *View) Head() (h *Head, err error) {
	long := false
	err = v.Waits(func(l []byte) bool {
		long = long || len(l) > longLine
		return !long
	}, func(w Waiting) bool {
		h = v.head(w)
		return false
	})
	if h == nil && long && err == nil {
		h = v.head(Waiting{Entry: Entry{Start: v.waitsFrom(), End: v.Size()}})
	}
	return h, err
}

func (v *View) head(w Waiting) *Head {
	st := &v.tx.st
	h := &Head{At: Place{st.QueueGeneration, w.Start}, Since: w.QueuedAt(), Noted: true}
	if !h.Since.IsZero() {
		return h
	}
	h.Since, h.Noted = v.WrittenAt(), false
	by := func(at time.Time) {
		if h.Noted = true; at.Before(h.Since) {
			h.Since = at
		}
	}
	if d := v.tx.redeliver; d != nil && d.StartOffset == w.Start {
		if by(d.DeliveredAt); d.Detached {
			return h
		}
	}
	if v.Replaced() != "" {
		return h
	}
	if w.End <= st.SeenSize {
		by(time.Unix(0, st.SeenMtime))
	}
	for _, s := range reachedOf(st.Reached) {
		if w.End <= s.end {
			by(time.Unix(0, s.at))
		}
	}
	return h
}

// QueuedAt is when `send` put the entry into the inbox, or when a scheduled entry was due; zero if the line
// does not say.
func (e Entry) QueuedAt() time.Time {
	sent, due := e.SentAt(), e.timeMember(notBeforeMember)
	if !sent.IsZero() && due.After(sent) {
		return due
	}
	return sent
}

// NoteHead records by when the waiting entries were there, because a queue file itself only shows its last
// write. It does nothing if it would have to wait for the lock, or would create files that the owner does not
// own.
func (b *Inbox) NoteHead(ctx context.Context) {
	if !b.mayNote() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteWait)
	defer cancel()
	t, err := b.Begin(ctx)
	if err != nil {
		return
	}
	t.dirty = true
	_ = t.Commit() // best effort: the next commit notes it
	_ = t.Close()
}

// noteWait allows for a lock that is held briefly.
const noteWait = 100 * time.Millisecond

// mayNote reports whether a read-only command may commit what it found.
func (b *Inbox) mayNote() bool {
	dir, err := disk.StatDir(b.dir)
	return err == nil && dir.UID == uint32(os.Geteuid()) && b.Lock() == 0
}

// reach is the length of the queue file at a time. What lies before that end has waited at least since then.
type reach struct{ end, at int64 }

// maxReached bounds the reaches in a record.
const maxReached = 4

// rememberReached drops the reaches that say nothing about waiting entries, and adds the present one.
func (t *Tx) rememberReached(next *journal.Record, now Mark) {
	last := next.Cursor // the entry in flight may be given back
	var all []reach
	for _, s := range reachedOf(next.Reached) {
		if next.Cursor < s.end && s.end <= now.Size {
			all, last = append(all, s), s.end
		}
	}
	if last < now.Size && len(all) < maxReached {
		all = append(all, reach{now.Size, now.Mtime})
	}
	next.Reached = nil
	for i, s := range all {
		next.Reached = append(next.Reached, "[,"[min(i, 1)], '[')
		next.Reached = append(strconv.AppendInt(next.Reached, s.end, 10), ',')
		next.Reached = append(strconv.AppendInt(next.Reached, s.at, 10), ']')
	}
	if len(all) > 0 {
		next.Reached = append(next.Reached, ']')
	}
}

func reachedOf(record []byte) (all []reach) {
	for _, item := range flat.Value(record).Items() {
		pair := item.Items()
		if len(pair) != 2 {
			return nil // written by another release
		}
		end, _ := strconv.ParseInt(string(pair[0]), 10, 64)
		at, _ := strconv.ParseInt(string(pair[1]), 10, 64)
		all = append(all, reach{end, at})
	}
	return all
}
