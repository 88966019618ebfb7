package inbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"heartbeat/internal/disk"
)

// anchorSpan is how much before the cursor is kept in mind at the least.
const anchorSpan = 4 << 10

// Mark is what the queue file looked like at one moment.
type Mark struct {
	Size  int64
	Mtime int64 // nanoseconds since 1970
}

// anchor recognises the file that the cursor is set in: by the hash of the
// bytes before the cursor, at least the whole last line.
func (t *Tx) anchor(lineStart int64) {
	t.st.AnchorStart, t.st.AnchorSum = 0, ""
	if t.file == nil || t.st.Cursor == 0 {
		return
	}
	start := max(0, min(lineStart, t.st.Cursor-anchorSpan))
	sum, err := hashRange(t.file, start, t.st.Cursor)
	if err != nil {
		return // the file shrank just now: the next transaction notices
	}
	t.st.AnchorStart, t.st.AnchorSum = start, sum
}

func hashRange(f *disk.File, start, end int64) (string, error) {
	h := sha256.New()
	chunk := make([]byte, min(end-start, readChunk))
	for off := start; off < end; off += int64(len(chunk)) {
		part := chunk[:min(int64(len(chunk)), end-off)]
		if _, err := f.ReadAt(part, off); err != nil {
			return "", err
		}
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// replaced says why the queue file is not the one that the cursor was set in,
// or nothing when it is.
func (t *Tx) replaced() (string, error) {
	if t.file == nil || t.st.Cursor == 0 && t.inFlight == nil && t.redeliver == nil {
		return "", nil // it may come back; or nothing was read from it yet
	}
	if cur, size := t.st.Cursor, t.size(); cur > size {
		return fmt.Sprintf("the cursor %d is beyond the end %d", cur, size), nil
	}
	if why, err := t.otherBytes(); why != "" || err != nil {
		return why, err
	}
	if why, err := t.rewritten(); why != "" || err != nil {
		return why, err
	}
	for _, d := range []*Delivery{t.inFlight, t.redeliver} {
		if d == nil || d.Detached {
			continue
		}
		if same, err := t.holds(d); err != nil || !same {
			return fmt.Sprintf("the entry [%d,%d) stands there no longer", d.StartOffset, d.EndOffset), err
		}
	}
	return "", nil
}

// otherBytes compares what stands before the cursor.
func (t *Tx) otherBytes() (string, error) {
	cur := t.st.Cursor
	if cur == 0 {
		return "", nil
	}
	if t.st.AnchorSum != "" {
		sum, err := hashRange(t.file, t.st.AnchorStart, cur)
		if err != nil {
			return "", fmt.Errorf("read inbox: %w", err)
		}
		if sum != t.st.AnchorSum {
			return fmt.Sprintf("what stands before the cursor %d is not what was acknowledged", cur), nil
		}
		return "", nil
	}
	if t.moved() {
		return "it is another file", nil
	}
	boundary, err := t.atBoundary(cur)
	if err == nil && !boundary {
		return fmt.Sprintf("the cursor %d is amid a line", cur), nil
	}
	return "", err
}

// moved reports whether another file has taken the queue file's place.
func (t *Tx) moved() bool {
	st := &t.st
	return st.SeenFile != "" && st.Lock == t.lockID && t.file.Identity() != st.SeenFile
}

// rewritten notices a file that was truncated and then filled with the very
// same bytes, as a timer does that writes one prompt each night: it has not
// grown since the last commit, and yet it was written to, or is another file.
//
// It is no sign if the whole directory was copied, which gives another lock
// file; nor a touch(1), which gives the same file one time for both access and
// change, as a write does not; nor what a power loss may do to a file, which is
// to be shorter or to have an older time.
func (t *Tx) rewritten() (string, error) {
	st := t.st
	if st.SeenFile == "" || st.Lock != t.lockID {
		return "", nil
	}
	info, rebooted := t.file.Info(), st.Boot != t.boot
	switch {
	case info.Size > st.SeenSize:
		return "", nil
	case info.Size < st.SeenSize:
		if rebooted {
			return "", nil
		}
		return "it is shorter than it was", nil
	case t.moved():
		return "it is another file", nil
	case info.Mtime == st.SeenMtime, info.Mtime < st.SeenMtime && rebooted:
		return "", nil
	case info.Atime == info.Mtime:
		// Kept in mind at once: reading the file will change the time of access.
		t.touched, t.dirty = true, true
		return "", nil
	}
	if grows, err := t.grows(); grows || err != nil {
		return "", err
	}
	return "it was written anew", nil
}

// grows reports whether somebody is just appending to a file that seems to be
// written to and no longer than before: a write sets the time of change first
// and the length last.
func (t *Tx) grows() (bool, error) {
	const looks = 10
	for range looks {
		info, err := t.file.Settled()
		if err != nil || info.Size > t.st.SeenSize {
			return true, err
		}
		time.Sleep(time.Millisecond) // where the system does not let us wait for the writer
	}
	return false, nil
}

func (t *Tx) atBoundary(cur int64) (bool, error) {
	if cur == t.size() {
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

// holds reports whether the queue file still has d's line where d says.
func (t *Tx) holds(d *Delivery) (bool, error) {
	if t.file == nil || d.EndOffset > t.size() {
		return false, nil
	}
	if d.TextFile != "" {
		l, err := readLine(t.file, d.StartOffset, t.size(), longMost)
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
	return bytes.Equal(b, d.bytes()), nil
}

// recognise compares the queue file with what the state remembers of it, and
// starts from the file's beginning when it is another.
func (t *Tx) recognise() error {
	why, err := t.replaced()
	if errors.Is(err, io.EOF) { // it was truncated amid the look
		if err = t.openFile(); err == nil {
			why, err = t.replaced()
		}
	}
	if err != nil {
		return err
	}
	if t.replacedWhy = why; why != "" {
		t.warn("inbox %s was truncated or replaced (%s): reading it from its start", t.box.path, why)
		t.startOver()
		return t.event(Event{Event: EventReplaced, Reason: why})
	}
	return nil
}

// startOver reads the queue file from its start: it is another one.
func (t *Tx) startOver() {
	t.st.Cursor, t.st.SyncedTo, t.st.SeenFile, t.dirty = 0, 0, "", true
	t.st.Punching = 0
	t.setCanceled(nil)
	t.st.QueueGen++
	t.anchor(0)
	t.detach()
}

// noticeGone is for whoever is about to make the queue file: the one that was
// read from does not come back then.
func (t *Tx) noticeGone() {
	if t.file == nil && (t.st.Cursor > 0 || t.st.SeenFile != "") {
		t.startOver()
	}
}

// detach lets what is in flight, or waits to be redelivered, outlive the file
// that it was read from.
func (t *Tx) detach() {
	if t.inFlight != nil && !t.inFlight.Detached {
		d := *t.inFlight
		d.Detached = true
		t.setInFlight(&d)
	}
	if t.redeliver != nil && !t.redeliver.Detached {
		d := *t.redeliver
		d.Detached = true
		t.setRedeliver(&d)
	}
}
