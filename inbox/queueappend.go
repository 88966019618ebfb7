package inbox

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// queueName stands for the queue file where a record says what it appends.
const queueName = "queue"

// span is a byte range of the queue file.
type span struct{ start, end int64 }

// writeQueue appends committed lines to the queue file: all of them where the
// commit is fresh, and otherwise what is not there already. Other programs append
// without the lock, so the lines may come to stand behind the offsets that the
// commit had in mind.
func (t *Tx) writeQueue(lines []appendRecord, fresh bool) (err error) {
	f, _, err := disk.OpenAppend(t.box.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	switch size := f.Info().Size; {
	case size == lines[0].At:
	case fresh:
		whole, err := endsLine(f, size)
		if err != nil {
			return err
		}
		lines[0].Newline = !whole || lines[0].Data != nil
	default:
		for i := range lines {
			if err := t.completeQueue(f, lines, i); err != nil {
				return err
			}
		}
		return nil
	}
	t.mended = t.mended || !fresh
	at, err := t.appendQueue(f, joinedBytes(lines), lines[0].At)
	if err != nil {
		return err
	}
	for i, a := range lines {
		end := at + int64(len(a.bytes()))
		t.stands(i, a, end)
		at = end
	}
	return nil
}

// stands notes where the i-th line of a commit came to end.
func (t *Tx) stands(i int, a appendRecord, end int64) {
	if i < len(t.queued) { // the lines of an earlier commit are nobody's receipt
		t.queued[i] = span{end - int64(len(a.content())) - 1, end}
	}
}

// plannedSpans is where a commit wants its lines of the queue file.
func plannedSpans(all []appendRecord) (spans []span) {
	for _, a := range all {
		if a.File == queueName {
			end := a.At + int64(len(a.bytes()))
			spans = append(spans, span{end - int64(len(a.content())) - 1, end})
		}
	}
	return spans
}

func joinedBytes(lines []appendRecord) (all []byte) {
	for _, a := range lines {
		all = append(all, a.bytes()...)
	}
	return all
}

// completeQueue writes what the queue file lacks of the i-th line of a commit.
func (t *Tx) completeQueue(f *disk.File, lines []appendRecord, i int) error {
	a := lines[i]
	rest, at, err := missing(f, a)
	if err != nil || len(rest) == 0 {
		return err
	}
	t.mended = true
	if at < f.Info().Size { // as missing found it: others may have appended since
		return mend(f, rest, at)
	}
	if begun := at - a.At; begun > 0 && begun == int64(len(a.bytes())-len(rest)) {
		if at, err = t.finishLine(f, a, rest, at); err != nil {
			return err
		}
	} else if mended, err := t.unglue(f, lines[i:]); err != nil || mended {
		return err
	} else if at, err = t.appendQueue(f, rest, a.At); err != nil {
		return err
	}
	t.stands(i, a, at+int64(len(rest)))
	return nil
}

// finishLine writes the rest of a line that a kill, or a full disk, cut off at
// the end of the file. If somebody else has appended by then, what is there of
// it is blanked out, and the line is written once more.
func (t *Tx) finishLine(f *disk.File, a appendRecord, rest []byte, end int64) (at int64, err error) {
	if at, err = f.Append(rest); err != nil || at == end {
		return at, err
	}
	if err := errors.Join(blankOut(f, a.At, end), blankOut(f, at, at+int64(len(rest)))); err != nil {
		return 0, err
	}
	a.Newline = true
	at, err = t.appendQueue(f, a.bytes(), a.At)
	return at + int64(len(a.bytes())-len(rest)), err
}

// endsLine reports whether a file of that size ends in a newline, or is empty.
func endsLine(f *disk.File, size int64) (bool, error) {
	if size == 0 {
		return true, nil
	}
	last := make([]byte, 1)
	_, err := f.ReadAt(last, size-1)
	return last[0] == '\n', err
}

// planQueueAppend decides where a line of the queue goes, if nobody else appends
// meanwhile: at the end, or behind the line before it in the same commit.
func (t *Tx) planQueueAppend(a appendRecord, before *appendRecord) (_ appendRecord, err error) {
	a.Generation = t.st.QueueGen
	if before != nil {
		a.At = before.At + int64(len(before.bytes()))
		return a, nil
	}
	if t.file == nil {
		return a, nil
	}
	whole, err := endsLine(t.file, t.size())
	a.At, a.Newline = t.size(), !whole || a.Data != nil // see unglue
	return a, err
}

// replaysQueue reports whether a line that an earlier commit appended must be
// there: it waits, and the queue file was not replaced since.
func (s *state) replaysQueue(a appendRecord, inFlight *Delivery) bool {
	if inFlight != nil && !inFlight.Detached && a.At < inFlight.EndOffset {
		return false
	}
	return a.Generation == s.QueueGen && a.At >= s.Cursor
}

// syncFile makes what the queue file holds durable, if there is one.
func (t *Tx) syncFile() error {
	f, err := disk.OpenForeign(t.box.path, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
