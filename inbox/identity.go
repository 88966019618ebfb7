package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"heartbeat/internal/disk"
)

// verdict says whether the queue file is the one that the cursor was set in.
type verdict struct {
	// replaced says why it is not, empty if it is.
	replaced string
	// edited says that it is, but that waiting lines may have been changed.
	edited bool
	// doubtful says that the settled lines may have been written again as new
	// work.
	doubtful bool
	// lost says that the entry in flight, or the one to be redelivered, is no
	// longer in the file.
	lost struct{ inFlight, redeliver bool }
}

// compare decides whether the queue file is the one that the cursor was set in.
// What counts is what is before the cursor: if that is what was settled, it is
// the same inbox, whatever program wrote it. The exception is a file that was
// rewritten with exactly the same bytes: that is new work.
func (t *Tx) compare() (v verdict, err error) {
	if t.file == nil {
		return v, nil // it may come back
	}
	if cur, size := t.st.Cursor, t.queueSize(); cur > size {
		return verdict{replaced: fmt.Sprintf("the cursor %d is beyond the end %d", cur, size)}, nil
	}
	if v.replaced, err = t.otherBytes(); v.replaced != "" || err != nil {
		return v, err
	}
	kind, err := t.change()
	if err != nil {
		return v, err
	}
	lacks, err := t.lacksOwn()
	if err != nil {
		return v, err
	}
	if kind != unchanged || lacks {
		if v, err = t.judgeChange(kind, lacks); v.replaced != "" || err != nil {
			return v, err
		}
	}
	return v, t.findDelivered(&v)
}

// judgeChange decides about a file that was changed, but still has the bytes of the
// anchor before the cursor.
func (t *Tx) judgeChange(kind change, lacksOwn bool) (v verdict, err error) {
	left, err := t.tail()
	if lacksOwn {
		left = tailChanged
	}
	if err != nil || kind == grown && left != tailChanged {
		return v, err
	}
	same, err := t.keepsSettled()
	if err != nil {
		return v, err
	}
	nothingWaited := t.st.Cursor == t.st.SeenSize || t.st.Cursor == 0 && t.inFlight != nil && t.inFlight.EndOffset == t.st.SeenSize
	asLong, asOld := t.queueSize() == t.st.SeenSize, t.queueMark().Mtime == t.st.SeenMtime
	switch {
	case !same:
		v.replaced = otherSettled(t.st.Cursor)
	case kind == rewritten && left == tailSame:
		v.replaced = "it was rewritten"
	case kind == moved && asLong && nothingWaited && !asOld:
		v.replaced = "it is another file"
	default:
		v.edited = true
		v.doubtful = left == tailChanged && t.queueSize() == t.st.Cursor || left != tailChanged && asLong && !asOld
	}
	return v, nil
}

// findDelivered checks whether the entry in flight, and the one to be redelivered, are
// still in the file.
func (t *Tx) findDelivered(v *verdict) (err error) {
	if v.lost.inFlight, err = t.lacks(t.inFlight); err != nil {
		return err
	}
	if v.lost.redeliver, err = t.lacks(t.redeliver); err != nil {
		return err
	}
	d := t.inFlight
	switch {
	case v.lost.inFlight:
	case v.lost.redeliver:
		d = t.redeliver
	default:
		return nil
	}
	same := t.st.Cursor > 0 && t.st.AnchorSum != ""
	if same && !v.edited {
		same, err = t.keepsSettled()
	}
	if same {
		v.edited = true
	} else {
		v.replaced = fmt.Sprintf("the entry %s is no longer there", d.label())
	}
	return err
}

// lacks reports whether the queue file should have d's line but does not.
func (t *Tx) lacks(d *Delivery) (bool, error) {
	if d == nil || d.Detached {
		return false, nil
	}
	there, err := t.holds(d)
	return !there, err
}

func otherSettled(cursor int64) string {
	return fmt.Sprintf("what is before the cursor %d is not what was settled", cursor)
}

// otherBytes says how what is before the cursor differs from what was settled.
func (t *Tx) otherBytes() (string, error) {
	cur := t.st.Cursor
	if cur == 0 {
		return "", nil
	}
	if t.st.AnchorSum != "" {
		sum, err := t.hashRange(t.st.AnchorStart, cur)
		if err != nil {
			return "", fmt.Errorf("read inbox: %w", err)
		}
		if sum != t.st.AnchorSum {
			return otherSettled(cur), nil
		}
		return "", nil
	}
	if t.moved() {
		return "it is another file", nil
	}
	boundary, err := t.atBoundary(cur)
	if err == nil && !boundary {
		return fmt.Sprintf("the cursor %d is in the middle of a line", cur), nil
	}
	return "", err
}

// moved reports whether another file has taken the queue file's place.
func (t *Tx) moved() bool {
	return t.st.SeenFile != "" && !t.copied() && t.file.Identity() != t.st.SeenFile
}

func (t *Tx) atBoundary(cur int64) (bool, error) {
	if cur == t.queueSize() {
		return true, nil
	}
	around := make([]byte, 3)
	n, err := t.file.ReadAt(around, cur-1)
	if err != nil && err != io.EOF {
		return false, fmt.Errorf("read inbox: %w", err)
	}
	around = around[:n]
	return around[0] == '\n' || bytes.HasPrefix(around[1:], []byte("\n")) || bytes.HasPrefix(around[1:], []byte("\r\n")), nil
}

// holds reports whether the queue file still has d's line at d's offset.
func (t *Tx) holds(d *Delivery) (bool, error) {
	if t.file == nil || d.EndOffset > t.queueSize() {
		return false, nil
	}
	if d.TextFile != "" {
		l, err := readLine(t.file, d.StartOffset, t.queueSize(), longMost)
		if err != nil && err != io.EOF {
			return false, fmt.Errorf("read inbox: %w", err)
		}
		if !l.tooLong {
			l.id = entryID(l.raw)
		}
		return err == nil && l.end == d.EndOffset && l.id == d.EntryID, nil
	}
	b := make([]byte, d.EndOffset-d.StartOffset)
	if _, err := t.file.ReadAt(b, d.StartOffset); err != nil && err != io.EOF {
		return false, fmt.Errorf("read inbox: %w", err)
	}
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	if d.RawLine.Base64 == "" {
		b = []byte(toUTF8(b))
	}
	return bytes.Equal(b, d.rawBytes()), nil
}

// recognise compares the queue file with what the state remembers of it, and
// starts at the beginning if it is another file.
func (t *Tx) recognise() error {
	if t.copied() {
		t.st.SyncedTo = 0
	}
	v, err := t.compare()
	if errors.Is(err, io.EOF) { // it was truncated while it was read
		if err = t.openFile(); err == nil {
			v, err = t.compare()
		}
	}
	unread := t.st.Cursor == 0 && t.inFlight == nil && t.redeliver == nil
	switch {
	case err != nil:
		return err
	case v.replaced != "" && unread:
		return t.keepEdited(v)
	case v.replaced != "":
		t.replacedWhy = v.replaced
		t.warn("inbox %s was truncated or replaced (%s): reading it from its start", t.box.path, v.replaced)
		t.startOver()
		return t.addEvent(Event{Event: EventReplaced, Reason: v.replaced})
	case v.edited:
		return t.keepEdited(v)
	}
	return nil
}

// keepEdited continues in a file that somebody edited. The journal no longer vouches
// for the lines that it appended there, so the file is synced.
func (t *Tx) keepEdited(v verdict) error {
	if !t.viewing() {
		if err := errors.Join(t.file.Sync(), disk.SyncDir(t.box.dir)); err != nil {
			return fmt.Errorf("go on in the inbox %s, which somebody edited: %w", t.box.path, err)
		}
	}
	t.st.SyncedTo = t.queueSize()
	t.st.QueueGeneration++
	t.notice()
	if v.doubtful && t.st.Cursor > 0 {
		t.warn("inbox %s was rewritten, and begins with lines that were settled: they are not delivered again unless you remove %s", t.box.path, t.store.Cursor().Path())
	}
	if v.lost.inFlight || v.lost.redeliver {
		t.warn("the entry that was handed over is no longer in the inbox %s: it is kept apart from the file, and the line in its place is another entry", t.box.path)
	}
	t.detach(v.lost.inFlight, v.lost.redeliver)
	return nil
}

// startOver reads the queue file from its start, because it is another file.
func (t *Tx) startOver() {
	t.st.Cursor, t.st.SyncedTo, t.st.SeenFile, t.dirty = 0, 0, "", true
	t.st.AnchorStart, t.st.AnchorSum, t.st.Punching = 0, "", 0
	t.forgetDigest()
	t.setCanceled(nil)
	t.st.QueueGeneration++
	t.detach(true, true)
}

// noticeGone is called before a queue file is created: the one that was read
// before will not come back.
func (t *Tx) noticeGone() {
	if t.file == nil && (t.st.Cursor > 0 || t.st.SeenFile != "") {
		t.startOver()
	}
}

// detach keeps the entry in flight, or the one to be redelivered, apart from the
// queue file, which no longer has it.
func (t *Tx) detach(inFlight, redeliver bool) {
	if inFlight && t.inFlight != nil && !t.inFlight.Detached {
		d := *t.inFlight
		d.Detached = true
		t.setInFlight(&d)
	}
	if redeliver && t.redeliver != nil && !t.redeliver.Detached {
		d := *t.redeliver
		d.Detached = true
		t.setRedeliver(&d)
	}
}
