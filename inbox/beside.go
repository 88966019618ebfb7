package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
)

// Producers append without the lock, and some write a line in parts: its text and
// then its newline, or a buffer at a time. Between a look at the queue file's end
// and the call that appends there is always a moment in which such a part may
// come. So the end is looked at again behind the call, and a part that came is
// moved behind our lines, where its writer goes on with it. That takes one write,
// of bytes that are all there, and nobody's offsets change but those of the two.

// movedMost bounds the part of a line that is moved.
const movedMost = 4 << 20

// appendQueue appends b, whole lines, to the queue file, and returns the offset
// that they have come to. looked is where the file ended when that end was judged
// to be the end of a line.
func (t *Tx) appendQueue(f *disk.File, b []byte, looked int64) (at int64, err error) {
	at, err = f.Append(b)
	if err != nil || at == looked {
		return at, err
	}
	start, whole, err := t.unfinished(f, at)
	if err != nil || whole {
		return at, err
	}
	if start >= 0 {
		err = t.exchange(f, start, at, at+int64(len(b)))
		if !errors.Is(err, fs.ErrPermission) { // an inbox that can only be appended to
			return start, err
		}
	}
	t.warn("somebody was writing a line of the inbox at offset %d when another was appended: what of it comes later is taken for an entry of its own: write each line with one call", at)
	if b[0] == '\n' {
		return at, nil
	}
	if err := blankOut(f, at, at+int64(len(b))); err != nil && !errors.Is(err, fs.ErrPermission) {
		return at, err
	}
	at, err = f.Append(append([]byte{'\n'}, b...))
	return at + 1, err
}

// unfinished finds the start of the line that stands unfinished before at: -1 if
// it cannot be moved, since it was delivered already or is too long. whole says
// that there is none.
func (t *Tx) unfinished(f *disk.File, at int64) (start int64, whole bool, err error) {
	settled := t.st.Cursor
	for _, d := range []*Delivery{t.inFlight, t.redeliver} {
		if d != nil && !d.Detached {
			settled = max(settled, d.EndOffset)
		}
	}
	from := min(at, max(settled, at-movedMost))
	start, err = lineStart(io.NewSectionReader(f, from, at-from), at-from)
	if err != nil {
		return 0, false, fmt.Errorf("look at what %s ended in: %w", t.box.path, err)
	}
	if start > 0 {
		return from + start, from+start == at, nil
	}
	starts, err := endsLine(f, from)
	if err != nil || !starts {
		return -1, false, err
	}
	return from, from == at, nil
}

// exchange has [start,middle) and [middle,end) of the queue file change places.
func (t *Tx) exchange(f *disk.File, start, middle, end int64) error {
	b := make([]byte, end-start)
	if _, err := f.ReadAt(b, start); err != nil {
		return fmt.Errorf("put lines of %s apart: %w", t.box.path, err)
	}
	part := bytes.Clone(b[:middle-start])
	copy(b[copy(b, b[middle-start:]):], part)
	if err := mend(f, b, start); err != nil {
		return err
	}
	if start < t.st.SyncedTo {
		return f.Sync()
	}
	return nil
}

// blankOut makes blank lines of a range of our own bytes.
func blankOut(f *disk.File, from, to int64) error {
	return mend(f, bytes.Repeat([]byte{'\n'}, int(to-from)), from)
}

// tellingPrefix is how much of a line that was made here tells it from any other:
// it begins with the entry's id.
const tellingPrefix = 32

// unglue is for a commit whose first line is nowhere in the queue file: it takes
// what is there of it out of the line that it melted into. A kill may have come
// before somebody's part of a line was moved behind it, or amid the writing of
// it. mended says that all of the lines are there then. Others' lines that were
// requeued or scheduled cannot be told from what they melt into: they begin with
// a newline.
func (t *Tx) unglue(f *disk.File, lines []appendRecord) (mended bool, err error) {
	if lines[0].Line == nil {
		return false, nil
	}
	telling := lines[0].Line[:min(tellingPrefix, len(lines[0].Line))]
	size := f.Info().Size
	from := min(lines[0].At, size)
	start, at, edited := int64(0), int64(-1), false
	err = eachLine(io.NewSectionReader(f, from, size-from), from, func(off, _ int64, l []byte, _ bool) bool {
		if i := bytes.Index(l, telling); i >= 0 {
			start, at = off, off+int64(i)
			_, no := flat.Parse(l[i:])
			edited = no == nil
		}
		return at < 0
	})
	if err != nil || at < 0 || at-start > movedMost {
		return false, err
	}
	all := bytes.TrimPrefix(joinedBytes(lines), []byte{'\n'})
	there := make([]byte, min(int64(len(all)), size-at))
	if _, err := f.ReadAt(there, at); err != nil {
		return false, err
	}
	n := 0
	for n < len(there) && there[n] == all[n] {
		n++
	}
	if edited && n <= len(lines[0].Line) { // by somebody who wants another entry
		return false, nil
	}
	end := at + int64(n)
	if n < len(all) {
		err = blankOut(f, at, end)
	}
	if err == nil {
		err = t.exchange(f, start, at, end)
	}
	if errors.Is(err, fs.ErrPermission) { // an inbox that can only be appended to
		return false, nil
	}
	return n == len(all), err
}

// mend writes amid a file that is open for appending, which that descriptor cannot.
func mend(appending *disk.File, b []byte, at int64) error {
	f, err := disk.OpenForeign(appending.Path(), unix.O_RDWR)
	if err != nil {
		return err
	}
	if f.Identity() == appending.Identity() {
		err = f.WriteAt(b, at)
	} else {
		err = fmt.Errorf("write %s: it was replaced just now", f.Path())
	}
	return errors.Join(err, f.Close())
}
