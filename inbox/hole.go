package inbox

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// ErrNoHoles says that the file system cannot give back the space amid a file.
var ErrNoHoles = disk.ErrNoHoles

// Compaction says what [Inbox.Compact] gave back.
type Compaction struct {
	// To is the offset before which the queue file takes no space.
	To int64 `json:"to_offset"`
	// Freed is how many bytes on the disk that gave back just now.
	Freed int64 `json:"freed_bytes"`
	// Warnings are sentences about what was found and mended besides.
	Warnings []string `json:"warnings,omitempty"`
}

// Compact gives back the disk space of what was settled, without moving a byte:
// it makes a hole in the queue file, so that every offset and every program that
// appends stays right. Some kilobytes before the cursor stay, by which the file
// is recognised. Where the file system has no holes the error matches
// [ErrNoHoles], and nothing has changed.
func (b *Inbox) Compact(ctx context.Context) (c Compaction, err error) {
	t, err := b.Begin(ctx)
	if err != nil {
		return c, err
	}
	defer func() {
		c.Warnings = t.Warnings()
		err = errors.Join(err, t.Close())
	}()
	to, err := t.holeEnd()
	if err != nil || to == 0 {
		return c, err
	}
	before := t.file.Info().Space
	t.st.Punching, t.dirty = to, true
	// Making the hole changes the file's times, by which a file that was written
	// anew is known: so the intent comes first, and a kill between the two is
	// finished by whoever comes next.
	if err := t.Commit(); err != nil {
		return c, fmt.Errorf("compact %s: %w", b.path, err)
	}
	if err := t.makeHole(); err != nil {
		return c, err
	}
	return Compaction{To: to, Freed: before - t.file.Info().Space}, nil
}

// holeEnd is the end of the last line that nothing needs any more: before the
// bytes that the file is recognised by, and before what may be delivered again.
func (t *Tx) holeEnd() (int64, error) {
	if t.file == nil || t.st.Cursor == 0 || t.st.AnchorSum == "" {
		return 0, nil
	}
	end := t.st.AnchorStart
	for _, d := range []*Delivery{t.inFlight, t.redeliver} {
		if d != nil && !d.Detached {
			end = min(end, d.StartOffset)
		}
	}
	end, err := lineStart(t.file, end)
	if err != nil {
		return 0, fmt.Errorf("read inbox: %w", err)
	}
	return end, nil
}

// makeHole punches the hole that the last commit announced, and commits what the
// file looks like after it.
func (t *Tx) makeHole() error {
	f, err := disk.OpenForeign(t.box.path, unix.O_RDWR)
	if err != nil {
		return fmt.Errorf("compact %s: %w", t.box.path, err)
	}
	punched := f.PunchHole(t.st.Punching)
	if punched == nil {
		punched = f.Sync()
	}
	err = errors.Join(f.Close(), t.openFile())
	if err == nil {
		t.st.Punching, t.dirty = 0, true
		err = t.Commit()
	}
	if err = errors.Join(punched, err); err != nil {
		return fmt.Errorf("compact %s: %w", t.box.path, err)
	}
	return nil
}

// finishHole does what a killed compaction left: the file must not be taken for
// one that was written anew.
func (t *Tx) finishHole() error {
	if t.st.Punching == 0 {
		return nil
	}
	if t.file == nil || t.moved() || t.size() < t.st.SeenSize {
		t.st.Punching, t.dirty = 0, true // the file it was meant for is gone
		return nil
	}
	if err := t.makeHole(); err != nil && t.st.Punching != 0 {
		t.warn("the space of what was settled is given back later: %v", err)
	}
	return nil
}
