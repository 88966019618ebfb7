package inbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

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
	cur, size := t.st.Cursor, t.size()
	switch {
	case cur == 0:
		return "", nil
	case t.file == nil:
		return "the inbox is gone", nil
	case cur > size:
		return fmt.Sprintf("the cursor %d is beyond the end %d", cur, size), nil
	}
	if t.st.AnchorSum != "" {
		sum, err := hashRange(t.file, t.st.AnchorStart, cur)
		if err != nil {
			return "", fmt.Errorf("read inbox: %w", err)
		}
		if sum != t.st.AnchorSum {
			return fmt.Sprintf("what stands before the cursor %d is not what was acknowledged", cur), nil
		}
		return t.rewritten(), nil
	}
	boundary, err := t.atBoundary(cur)
	if err == nil && !boundary {
		return fmt.Sprintf("the cursor %d is amid a line", cur), nil
	}
	return "", err
}

// rewritten notices a file that was truncated and then filled with the very
// same bytes, as a timer does that writes one prompt each night: all of it was
// acknowledged, it has not grown, and yet it was written to since. touch(1)
// gives a file one time for both access and change; a write does not. A copy is
// another inode, and is no new file.
func (t *Tx) rewritten() string {
	info := t.file.Info()
	if info.Size != t.st.Cursor || info.Size != t.st.SeenSize || int64(info.Ino) != t.st.SeenInode {
		return ""
	}
	if info.Mtime <= t.st.SeenMtime {
		return ""
	}
	if info.Atime == info.Mtime {
		t.dirty = true // keep the new time in mind: reading will change the access time
		return ""
	}
	return "it was written anew since its last entry was acknowledged"
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
	if err != nil {
		return err
	}
	if why != "" {
		t.warn("inbox %s was truncated or replaced (%s): reading it from its start", t.box.path, why)
		t.st.Cursor, t.st.SyncedTo, t.dirty = 0, 0, true
		t.st.QueueGen++
		t.anchor(0)
		t.detach()
		return nil
	}
	for _, d := range []*Delivery{t.inFlight, t.redeliver} {
		if d == nil || d.Detached {
			continue
		}
		same, err := t.holds(d)
		if err != nil {
			return err
		}
		if !same {
			t.warn("inbox %s no longer holds the entry [%d,%d): it lives on in %s", t.box.path, d.StartOffset, d.EndOffset, journalName)
			t.detach()
			return nil
		}
	}
	return nil
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
