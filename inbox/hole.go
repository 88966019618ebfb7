package inbox

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// ErrNoHoles says that the file system cannot free space in the middle of a file.
var ErrNoHoles = disk.ErrNoHoles

// freeRange is the range that can be freed: from the end of the hole that exists to
// the end of the last line that nothing needs. That is before the bytes that the
// file is recognised by, and before anything that may be delivered again.
func (t *Tx) freeRange() (from, to int64, err error) {
	if t.file == nil || t.st.Cursor == 0 || t.st.AnchorSum == "" {
		return 0, 0, nil
	}
	end := t.st.AnchorStart
	for _, d := range []*Delivery{t.inFlight, t.redeliver} {
		if d != nil && !d.Detached {
			end = min(end, d.StartOffset)
		}
	}
	if from, err = t.file.SkipZeros(0, end); err == nil {
		to, err = lines.Start(io.NewSectionReader(t.file, from, end-from), end-from)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read inbox: %w", err)
	}
	return from, from + to, nil
}

// freesBlocks reports whether a hole would free any space. If not, it would only
// turn lines into zeros that look like something somebody wrote.
func (t *Tx) freesBlocks(from, to int64) bool {
	return to > from && to/t.file.Info().Block > from/t.file.Info().Block
}

// makeHole punches the hole that the last commit announced, and commits what the
// file looks like afterwards.
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
	// Remembered even if the commit fails: the hole is there.
	t.st.DigestStart, t.st.DigestEnd, t.st.Digest = t.st.Punching, t.st.Punching, ""
	t.st.Punching, t.st.SeenMtime, t.dirty = 0, t.queueMark().Mtime, true
	return errors.Join(punched, t.Commit())
}

// finishHole finishes a compaction that was killed, so that the file is not taken
// for a rewritten one. If another file has replaced it since, nothing in that one
// was settled, and there is nothing to free.
func (t *Tx) finishHole() error {
	if t.st.Punching == 0 {
		return nil
	}
	same, err := t.keptItsBytes()
	if err != nil {
		return err
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

// keptItsBytes reports whether the queue file is still the one that the cursor
// was set in, whatever its time of change says.
func (t *Tx) keptItsBytes() (bool, error) {
	if t.file == nil || t.st.AnchorSum == "" || t.moved() || t.queueSize() < max(t.st.SeenSize, t.st.Cursor) {
		return false, nil
	}
	why, err := t.otherBytes()
	return why == "", err
}
