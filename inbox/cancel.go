package inbox

import (
	"errors"
	"fmt"
	"io"
)

// ErrNotWaiting says that an entry no longer waits: it was delivered, settled or
// canceled, or another line has taken its place.
var ErrNotWaiting = errors.New("it no longer waits")

// Cancel takes back an entry that waits in the queue or was given back to it.
// With the next commit it is a dead letter, [ReasonCanceled], and it is skipped
// when its turn comes. The queue file does not change. An entry that is in
// flight, or that is gone, gives [ErrNotWaiting].
func (t *Tx) Cancel(entryID string, start int64) (Letter, error) {
	if d := t.redeliver; d != nil && d.EntryID == entryID && d.StartOffset == start {
		return t.cancelGivenBack(d)
	}
	_, already := t.canceledAt(start)
	if t.file == nil || start < t.settledEnd() || start >= t.queueSize() || already {
		return Letter{}, ErrNotWaiting
	}
	l, err := readLine(t.file, start, t.queueSize(), MaxLine)
	switch {
	case err == io.EOF:
		return Letter{}, ErrNotWaiting
	case err != nil:
		return Letter{}, fmt.Errorf("read inbox: %w", err)
	case l.tooLong:
		return Letter{}, fmt.Errorf("it is %s: it becomes a dead letter anyway", ReasonTooLong)
	case !l.terminated:
		return Letter{}, ErrTorn
	}
	e := decodeEntry(l.raw)
	if e.EntryID != entryID {
		return Letter{}, ErrNotWaiting
	}
	if err := t.noteCanceled(l.start, l.end); err != nil {
		return Letter{}, err
	}
	e.Start, e.End = l.start, l.end
	return t.canceledLetter(e, nil)
}

func (t *Tx) cancelGivenBack(d *Delivery) (Letter, error) {
	dead := deadLetterOf(d, ReasonCanceled, t.box.utcNow())
	if err := t.deadLetter(dead); err != nil {
		return Letter{}, err
	}
	t.setRedeliver(nil)
	if !d.Detached {
		t.moveCursor(d.StartOffset, d.EndOffset)
	}
	return Letter{Letter: letterName(dead), DeadLetter: dead}, nil
}

func (t *Tx) canceledLetter(e Entry, was *earlier) (Letter, error) {
	dead := DeadLetter{
		EntryID: e.EntryID, ID: e.ID, Metadata: e.Metadata, RawLine: rawLineOf(e.raw),
		StartOffset: e.Start, EndOffset: e.End, Reason: ReasonCanceled, DeadLetteredAt: t.box.utcNow(),
	}
	if was != nil {
		dead.Attempts, dead.FirstSeq = was.Attempts, was.FirstSeq
	}
	return Letter{Letter: letterName(dead), DeadLetter: dead}, t.deadLetter(dead)
}

// CancelScheduled is [Tx.Cancel] for a scheduled entry. Its line is removed from
// .scheduled.jsonl.
func (t *Tx) CancelScheduled(entryID string) (Letter, error) {
	letter, err := Letter{}, ErrNotWaiting
	failed := t.box.EachScheduled(func(s Scheduled) bool {
		if s.EntryID != entryID {
			return true
		}
		if letter, err = t.canceledLetter(decodeEntry(s.line), s.putOff); err == nil {
			t.pending[len(t.pending)-1].Unschedule = s.lineID
		}
		return false
	})
	if failed != nil {
		return Letter{}, failed
	}
	return letter, err
}
