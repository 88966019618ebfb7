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

// Head is the entry that comes next, and since when it waits.
type Head struct {
	At Place
	// Since is when it came, as it says itself, or else a time by which it was there: it may
	// have waited for longer.
	Since time.Time
	// Noted says that it stays so, whatever is appended behind it.
	Noted bool
}

// Head is the entry that comes next, nil for none.
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

// QueuedAt is when `send` put the entry into the inbox, and a scheduled one when it was due,
// at the earliest; zero if the line does not say.
func (e Entry) QueuedAt() time.Time {
	sent, due := e.SentAt(), e.timeMember(notBeforeMember)
	if !sent.IsZero() && due.After(sent) {
		return due
	}
	return sent
}

// NoteHead has a later look know by when what waits now was there: by itself, a queue file
// says only when it was written last. It does nothing where that would have to wait, or would
// make files that are not the owner's.
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
	_ = t.Commit() // or the next one notes it
	_ = t.Close()
}

// noteWait is for a lock that somebody has just taken.
const noteWait = 100 * time.Millisecond

// mayNote reports whether somebody who only looks may commit what he has found.
func (b *Inbox) mayNote() bool {
	dir, err := disk.StatDir(b.dir)
	return err == nil && dir.UID == uint32(os.Geteuid()) && b.Lock() == 0
}

// reach is how long the queue file was at a time: what stands before its end then waits since
// then, or for longer.
type reach struct{ end, at int64 }

// maxReached bounds how many are kept: each record has them while entries wait.
const maxReached = 4

// rememberReached keeps those that say something of what waits, and adds what is seen now.
func (t *Tx) rememberReached(next *journal.Record, now Mark) {
	last := next.Cursor // what is in flight may be given back
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
			return nil // another release wrote it
		}
		end, _ := strconv.ParseInt(string(pair[0]), 10, 64)
		at, _ := strconv.ParseInt(string(pair[1]), 10, 64)
		all = append(all, reach{end, at})
	}
	return all
}
