package inbox

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// Compaction is what [Inbox.Compact] gave back.
type Compaction struct {
	To       int64    `json:"to_offset"`   // before it the inbox takes no space
	Freed    int64    `json:"freed_bytes"` // just now
	Warnings []string `json:"warnings,omitempty"`
}

// Compact gives back the disk space of settled lines without moving a byte: it makes a hole in the queue
// file, so that all offsets stay right and other programs can go on appending. The last settled line and at
// least 4 KiB before the cursor stay, because heartbeat recognises the file by them. On a file system without
// holes the error matches [ErrNoHoles] and nothing has changed.
func (b *Inbox) Compact(ctx context.Context) (c Compaction, err error) {
	t, err := b.Begin(ctx)
	if err != nil {
		return c, err
	}
	defer func() {
		c.Warnings = t.Warnings()
		err = errors.Join(err, t.Close())
	}()
	from, to, err := t.freeRange()
	// A hole that frees no block would only turn lines into zeros that look as if somebody had written them.
	if err != nil || to <= from || to/t.file.Info().Block <= from/t.file.Info().Block {
		return Compaction{To: from}, err
	}
	before := t.file.Info().Space
	t.st.Punching, t.dirty = to, true
	// Making the hole changes the file's times, which are used to recognise a rewritten file. So the intent
	// is committed first. After a kill in between, the next transaction makes the hole.
	if err := t.Commit(); err != nil {
		return c, fmt.Errorf("compact %s: %w", b.path, err)
	}
	if err := t.makeHole(); err != nil {
		return c, fmt.Errorf("compact %s: %w", b.path, err)
	}
	return Compaction{To: to, Freed: max(0, before-t.file.Info().Space)}, nil // others may have appended
}

// ErrNoHoles means that the file system cannot free space in the middle of a file.
var ErrNoHoles = disk.ErrNoHoles

// freeRange returns the range that can be freed: from the end of the existing hole to the end of the last unneeded
// line. It ends before the bytes that identify the file and before anything that may be delivered again.
func (t *Tx) freeRange() (from, to int64, err error) {
	if t.file == nil || t.st.Cursor == 0 || t.st.AnchorSum == "" {
		return 0, 0, nil
	}
	end := t.st.AnchorStart
	for _, d := range t.unsettled() {
		if !d.Detached {
			end = min(end, d.StartOffset)
		}
	}
	if from, err = t.file.SkipZeros(0, end); err == nil {
		to, err = lines.Start(io.NewSectionReader(t.file, from, end-from), end-from)
	}
	if err != nil {
		return 0, 0, inReading(err)
	}
	return from, from + to, nil
}

// makeHole punches the hole that the last commit announced, and commits the file's new appearance.
func (t *Tx) makeHole() error {
	f, err := disk.OpenForeign(t.box.path, unix.O_RDWR)
	if err != nil {
		return err
	}
	punched := f.PunchHole(t.st.Punching)
	if punched == nil {
		punched = f.Sync()
	}
	if err := errors.Join(f.Close(), t.openFile()); err != nil {
		return errors.Join(punched, err)
	}
	// These stay changed even if the commit fails, since the hole exists.
	t.st.DigestStart, t.st.DigestEnd, t.st.Digest = t.st.Punching, t.st.Punching, ""
	t.st.Punching, t.st.SeenMtime, t.dirty = 0, t.queueMark().Mtime, true
	return errors.Join(punched, t.Commit())
}

// finishHole completes a compaction that was killed, so that its hole is not mistaken for a rewrite. If
// another file has replaced the queue since, nothing in that file is settled and there is nothing to free.
func (t *Tx) finishHole() error {
	if t.st.Punching == 0 {
		return nil
	}
	// Whether it is still the file in which the cursor was set, regardless of its modification time.
	same := t.file != nil && t.st.AnchorSum != "" && !t.moved() && t.queueSize() >= max(t.st.SeenSize, t.st.Cursor)
	if same {
		why, err := t.otherBytes()
		if err != nil {
			return err
		}
		same = why == ""
	}
	if !same {
		t.st.Punching, t.dirty = 0, true
		return nil
	}
	if err := t.makeHole(); err != nil {
		t.warn("the space of settled entries is freed later: %v", err)
	}
	return nil
}
