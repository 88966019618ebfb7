package inbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"heartbeat/internal/lines"
)

// ErrNotWaiting means that an entry no longer waits: it was delivered, settled or canceled, or another line took its
// place.
var ErrNotWaiting = errors.New("it no longer waits")

// Cancel takes back an entry that waits in the queue or was given back to it. The next commit makes it a dead
// letter, [ReasonCanceled]; the cursor skips it when its turn comes. The queue file does not change. If the
// entry is in flight or gone, the error is [ErrNotWaiting].
func (t *Tx) Cancel(entryID string, start int64) (Letter, error) {
	if d := t.redeliver; d != nil && d.EntryID == entryID && d.StartOffset == start {
		letter := t.deadLetter(t.deadLetterOf(d, ReasonCanceled))
		t.pass(d)
		return letter, nil
	}
	if t.file == nil || start < t.settledEnd() || start >= t.queueSize() || t.canceledAt(start) {
		return Letter{}, ErrNotWaiting
	}
	l, err := readLine(t.file, start, t.queueSize(), MaxLine)
	switch {
	case err == io.EOF:
		return Letter{}, ErrNotWaiting
	case err != nil:
		return Letter{}, inReading(err)
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
	return t.deadLetter(t.unread(e, ReasonCanceled)), nil
}

// CancelScheduled is [Tx.Cancel] for a scheduled entry. The entry's line is removed from .scheduled.jsonl.
func (t *Tx) CancelScheduled(entryID string) (Letter, error) {
	letter, err := Letter{}, ErrNotWaiting
	failed := t.box.EachScheduled(func(s Scheduled) bool {
		if s.EntryID != entryID {
			return true
		}
		e := decodeEntry(s.line)
		if s.putOff != nil {
			s.putOff.resume(&e)
		}
		letter, err = t.deadLetter(t.unread(e, ReasonCanceled)), nil
		t.pending[len(t.pending)-1].Unschedule = s.lineID
		return false
	})
	if failed != nil {
		return Letter{}, failed
	}
	return letter, err
}

const (
	// maxCanceled bounds the number of spans in a journal record. canceledSpanBytes bounds the length of a span,
	// which is hashed when the cursor passes it.
	maxCanceled       = 500
	canceledSpanBytes = 8 << 20

	canceledSumLen = 12
)

// canceledSpan is a range of the queue file with canceled entries, which the cursor skips.
type canceledSpan struct {
	start, end int64
	entries    int
	// sum recognises the entries. For one entry it is the start of the entry_id, which identifies the entry even
	// after an edit moved it. For several it is the start of a hash of their bytes. It is empty until the commit.
	sum string
}

func byStart(s canceledSpan, at int64) int { return cmp.Compare(s.start, at) }

// canceledSpans reads the spans of a record, which are in file order.
func (t *Tx) canceledSpans() (all []canceledSpan) {
	for _, f := range strings.Fields(strings.Trim(string(t.st.Canceled), `"`)) {
		s, ok := canceledSpanFrom(f)
		if !ok {
			t.warn("the journal's note %q of canceled entries is invalid, and ignored", f)
			continue
		}
		all = append(all, s)
	}
	return all
}

// canceledSpanFrom reads what encodeCanceled wrote. For maxCanceled spans, fmt.Sscanf would take a millisecond a tick.
func canceledSpanFrom(text string) (s canceledSpan, ok bool) {
	fields := strings.SplitN(text, "-", 4)
	if len(fields) != 4 || fields[3] == "" {
		return s, false
	}
	start, err := strconv.ParseInt(fields[0], 10, 64)
	end, failed := strconv.ParseInt(fields[1], 10, 64)
	entries, last := strconv.Atoi(fields[2])
	return canceledSpan{start: start, end: end, entries: entries, sum: fields[3]}, cmp.Or(err, failed, last) == nil
}

// encodeCanceled completes the spans for the next record.
func (t *Tx) encodeCanceled() (_ []byte, err error) {
	t.canceled = slices.DeleteFunc(t.canceled, func(s canceledSpan) bool { return s.end <= t.st.Cursor })
	if len(t.canceled) == 0 {
		return nil, nil
	}
	var all []string
	for i := range t.canceled {
		s := &t.canceled[i]
		if s.sum == "" {
			if s.sum, err = t.sumCanceled(*s); err != nil {
				return nil, err
			}
		}
		all = append(all, fmt.Sprintf("%d-%d-%d-%s", s.start, s.end, s.entries, s.sum))
	}
	return []byte(`"` + strings.Join(all, " ") + `"`), nil
}

func (t *Tx) sumCanceled(s canceledSpan) (string, error) {
	if s.entries > 1 {
		sum, err := t.hashRange(s.start, s.end)
		return sum[:min(len(sum), canceledSumLen)], err
	}
	l, err := readLine(t.file, s.start, t.queueSize(), MaxLine)
	if err != nil || l.tooLong {
		return l.id, err
	}
	return entryID(l.raw)[:canceledSumLen], nil
}

// canceledAt reports whether the line at start was canceled.
func (t *Tx) canceledAt(start int64) bool {
	i, begins := slices.BinarySearchFunc(t.canceled, start, byStart)
	return begins || i > 0 && start < t.canceled[i-1].end
}

// passCanceled moves the cursor past a span that begins at start, and returns the new position. Without such
// a span it returns start.
func (t *Tx) passCanceled(start int64) (end int64, err error) {
	i, begins := slices.BinarySearchFunc(t.canceled, start, byStart)
	if !begins {
		return start, nil
	}
	s := t.canceled[i]
	same, err := t.stillCanceled(s)
	if err != nil {
		return start, err
	}
	if !same {
		if s.entries > 1 {
			t.warn("the inbox was edited: in place of the %d entries that were canceled in [%d,%d) there are others, which are delivered", s.entries, s.start, s.end)
			t.forgetCanceled(i)
		}
		return start, nil
	}
	last, err := lines.Start(t.file, s.end-1)
	if err != nil {
		return start, inReading(err)
	}
	t.forgetCanceled(i)
	t.moveCursor(last, s.end)
	return s.end, nil
}

func (t *Tx) forgetCanceled(i int) { t.canceled, t.dirty = slices.Delete(t.canceled, i, i+1), true }

func (t *Tx) stillCanceled(s canceledSpan) (bool, error) {
	if t.file == nil || s.end > t.queueSize() {
		return false, nil
	}
	sum, err := t.sumCanceled(s)
	return sum == s.sum, ignoreEOF(err)
}

// keepCanceled notes where an edit moved canceled entries, so that the cursor passes them there. It leaves out lines
// that send wrote: their letters identify those, and also show whether they were requeued.
func (t *Tx) keepCanceled() error {
	var kept []canceledSpan
	gone := map[string]bool{}
	for _, s := range t.canceled {
		there, err := t.stillCanceled(s)
		switch {
		case err != nil:
			return err
		case there:
			kept = append(kept, s)
		default:
			gone[s.sum] = true
		}
	}
	if len(gone) == 0 {
		return nil
	}
	t.canceled = kept
	t.readAgain("the inbox was edited before canceled entries were passed", 0, 0)
	var failed error
	err := lines.Each(io.NewSectionReader(t.file, t.st.Cursor, t.queueSize()-t.st.Cursor), t.st.Cursor, func(start, end int64, l []byte, _ bool) bool {
		sum := entryID(l)[:canceledSumLen]
		if gone[sum] && !t.canceledAt(start) && !bytes.Contains(l, []byte(sentAtMember)) {
			delete(gone, sum)
			failed = t.noteCanceled(start, end)
		}
		return failed == nil && len(gone) > 0
	})
	return errors.Join(err, failed)
}

// passMoved is passCanceled for one entry that an edit moved to another offset.
func (t *Tx) passMoved(e Entry) (bool, error) {
	for i, s := range t.canceled {
		if s.entries > 1 || !strings.HasPrefix(e.EntryID, s.sum) {
			continue
		}
		if there, err := t.stillCanceled(s); err != nil || there {
			return false, err
		}
		t.forgetCanceled(i)
		t.moveCursor(e.Start, e.End)
		return true, nil
	}
	return false, nil
}

// noteCanceled adds a line to the spans. It extends the preceding span if only blank lines lie between.
func (t *Tx) noteCanceled(start, end int64) error {
	i, _ := slices.BinarySearchFunc(t.canceled, start, byStart)
	if i > 0 {
		before := &t.canceled[i-1]
		follows, err := t.onlyBlanks(before.end, start)
		if err != nil {
			return err
		}
		if follows && end-before.start <= canceledSpanBytes {
			before.end, before.entries, before.sum, t.dirty = end, before.entries+1, "", true
			return nil
		}
	}
	if n := len(t.canceled); n >= maxCanceled {
		return fmt.Errorf("canceled entries at %d places of the inbox are still to be skipped, which is the most: cancel more once the session has passed some of them", n)
	}
	t.canceled, t.dirty = slices.Insert(t.canceled, i, canceledSpan{start: start, end: end, entries: 1}), true
	return nil
}

func (t *Tx) onlyBlanks(from, to int64) (bool, error) {
	const most = 256
	if from > to || to-from > most {
		return false, nil
	}
	b := make([]byte, to-from)
	if _, err := t.file.ReadAt(b, from); err != nil && err != io.EOF {
		return false, inReading(err)
	}
	return len(bytes.TrimSpace(b)) == 0, nil
}
