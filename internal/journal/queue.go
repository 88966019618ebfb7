package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/lines"
)

// queueFile is the queue file while lines of a commit are added to it.
type queueFile struct {
	*disk.File
	settled int64 // lines before this were delivered or settled, and stay as they are
	synced  int64 // bytes before this are known to survive a power loss
	warn    func(format string, args ...any)
}

// writeQueue appends committed lines to the queue file. With fresh it writes all of them, otherwise only what is
// missing. Other programs append without the lock, so the lines may end up behind the offsets that the commit planned.
func (s *Store) writeQueue(all []Line, settled int64, fresh bool) (err error) {
	if len(all) == 0 {
		return nil
	}
	f, _, err := disk.OpenAppend(s.queue)
	if err != nil {
		return err
	}
	q := &queueFile{f, settled, s.last.SyncedTo, s.warn}
	defer func() { err = errors.Join(err, f.Close()) }()
	switch size := f.Info().Size; {
	case size == all[0].At:
	case fresh:
		whole, err := lines.Ends(f, size)
		if err != nil {
			return err
		}
		all[0].Newline = !whole || all[0].Data != nil
	default:
		for i := range all {
			if err := s.complete(q, all, i); err != nil {
				return err
			}
		}
		return nil
	}
	s.changed = s.changed || !fresh
	b, _ := joined(all)
	at, err := q.add(b, all[0].At)
	if err != nil {
		return err
	}
	for i, l := range all {
		at += l.size()
		s.noteAppended(i, l, at)
	}
	return nil
}

// noteAppended notes where the i-th line of a commit ends in the queue file.
func (s *Store) noteAppended(i int, l Line, end int64) {
	if i < len(s.appended) { // else it is a line of an earlier commit
		s.appended[i] = spanOf(l, end)
	}
}

func spanOf(l Line, end int64) Span { return Span{end - int64(len(l.content())) - 1, end} }

// complete writes what the queue file lacks of the i-th line of a commit.
func (s *Store) complete(q *queueFile, all []Line, i int) error {
	l := all[i]
	rest, at, err := missing(q.File, l)
	if err != nil || len(rest) == 0 {
		return err
	}
	s.changed = true
	if at < q.Info().Size { // the size as missing saw it: others may have appended since
		return mend(q.File, rest, at)
	}
	if begun := at - l.At; begun > 0 && begun == l.size()-int64(len(rest)) {
		if at, err = q.finish(l, rest, at); err != nil {
			return err
		}
	} else if mended, err := q.unglue(all[i:]); err != nil || mended {
		return err
	} else if at, err = q.add(rest, l.At); err != nil {
		return err
	}
	s.noteAppended(i, l, at+int64(len(rest)))
	return nil
}

// finish writes the rest of a line that a kill or a full disk cut off at the end of the file. If somebody appends
// first, both parts of the line become blank, and finish writes the whole line once more.
func (q *queueFile) finish(l Line, rest []byte, end int64) (at int64, err error) {
	if at, err = q.Append(rest); err != nil || at == end {
		return at, err
	}
	if err := errors.Join(blankOut(q.File, l.At, end), blankOut(q.File, at, at+int64(len(rest)))); err != nil {
		return 0, err
	}
	l.Newline = true
	at, err = q.add(l.Bytes(), l.At)
	return at + l.size() - int64(len(rest)), err
}

// Producers append without the lock, and some write a line in parts: its text and then its newline, or a
// buffer at a time. Such a part may arrive between the check of the queue file's end and the appending call.
// So the end is checked again after the call, and a part that arrived in between is moved behind heartbeat's
// lines, where its writer continues it. The move is one write of bytes that the file already has, and changes
// only the offsets of the part and of heartbeat's lines.

// movedMost bounds the part of a line that is moved.
const movedMost = 4 << 20

// add appends b, whole lines, and returns their final offset. known is an offset at which the file was seen to end in a
// whole line.
func (q *queueFile) add(b []byte, known int64) (at int64, err error) {
	at, err = q.Append(b)
	if err != nil || at == known {
		return at, err
	}
	start, whole, err := q.unfinished(at)
	if err != nil || whole {
		return at, err
	}
	if start >= 0 {
		err = q.exchange(start, at, at+int64(len(b)))
		if !errors.Is(err, fs.ErrPermission) { // the inbox can only be appended to
			return start, err
		}
	}
	q.warn("somebody was writing a line of the inbox at offset %d when another was appended: the rest of that line becomes an entry of its own: write each line with one call", at)
	if b[0] == '\n' {
		return at, nil
	}
	if err := blankOut(q.File, at, at+int64(len(b))); err != nil && !errors.Is(err, fs.ErrPermission) {
		return at, err
	}
	at, err = q.Append(append([]byte{'\n'}, b...))
	return at + 1, err
}

// unfinished finds the start of an unfinished line before at. It returns -1 if the line cannot be moved because it was
// already delivered or is too long. whole means that there is no such line.
func (q *queueFile) unfinished(at int64) (start int64, whole bool, err error) {
	from := min(at, max(q.settled, at-movedMost))
	start, err = lines.Start(io.NewSectionReader(q, from, at-from), at-from)
	if err != nil {
		return 0, false, fmt.Errorf("read the end of %s: %w", q.Path(), err)
	}
	if start > 0 {
		return from + start, from+start == at, nil
	}
	starts, err := lines.Ends(q, from)
	if err != nil || !starts {
		return -1, false, err
	}
	return from, from == at, nil
}

// exchange swaps [start,middle) and [middle,end) of the queue file.
func (q *queueFile) exchange(start, middle, end int64) error {
	b := make([]byte, end-start)
	if _, err := q.ReadAt(b, start); err != nil {
		return fmt.Errorf("separate lines of %s: %w", q.Path(), err)
	}
	part := bytes.Clone(b[:middle-start])
	copy(b[copy(b, b[middle-start:]):], part)
	if err := mend(q.File, b, start); err != nil {
		return err
	}
	if start < q.synced {
		return q.Sync()
	}
	return nil
}

// blankOut turns a range of heartbeat's own bytes into blank lines.
func blankOut(f *disk.File, from, to int64) error {
	return mend(f, bytes.Repeat([]byte{'\n'}, int(to-from)), from)
}

// tellingPrefix is how many bytes tell a line of heartbeat's from any other: the line begins with the entry's id.
const tellingPrefix = 32

// unglue handles a commit whose first line is nowhere in the queue file: it separates what there is of the commit's
// lines from the part of somebody's line that they were glued to. A kill may have come while heartbeat's lines were
// written, or before that part was moved behind them. mended means that all lines are in place. Requeued and scheduled
// lines cannot be told from what they are glued to, so those begin with a newline.
func (q *queueFile) unglue(all []Line) (mended bool, err error) {
	first := all[0].JSON
	if first == nil {
		return false, nil
	}
	telling := first[:min(tellingPrefix, len(first))]
	size := q.Info().Size
	from := min(all[0].At, size)
	start, at, edited := int64(0), int64(-1), false
	err = lines.Each(io.NewSectionReader(q, from, size-from), from, func(off, _ int64, l []byte, _ bool) bool {
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
	b, _ := joined(all)
	b = bytes.TrimPrefix(b, []byte{'\n'})
	there := make([]byte, min(int64(len(b)), size-at))
	if _, err := q.ReadAt(there, at); err != nil {
		return false, err
	}
	n := 0
	for n < len(there) && there[n] == b[n] {
		n++
	}
	if edited && n <= len(first) { // edited by somebody who wants another entry
		return false, nil
	}
	end := at + int64(n)
	if n < len(b) {
		err = blankOut(q.File, at, end)
	}
	if err == nil {
		err = q.exchange(start, at, end)
	}
	if errors.Is(err, fs.ErrPermission) { // the inbox can only be appended to
		return false, nil
	}
	return n == len(b), err
}

// mend writes to the middle of a file that is open for appending, through a second descriptor.
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
