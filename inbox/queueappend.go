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
		lines[0].Newline = !whole
	default:
		for i, a := range lines {
			if err := t.completeQueue(f, a, i); err != nil {
				return err
			}
		}
		return nil
	}
	var all []byte
	for _, a := range lines {
		all = append(all, a.bytes()...)
	}
	at, err := f.Append(all)
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

// completeQueue writes what the queue file lacks of a line.
func (t *Tx) completeQueue(f *disk.File, a appendRecord, i int) error {
	rest, at, err := missing(f, a)
	if err != nil || len(rest) == 0 {
		return err
	}
	if at < f.Info().Size { // as missing found it: others may have appended since
		return t.mendQueue(rest, at)
	}
	at, err = f.Append(rest)
	if err == nil {
		t.stands(i, a, at+int64(len(rest)))
	}
	return err
}

// mendQueue writes amid the file, which a descriptor for appending cannot.
func (t *Tx) mendQueue(b []byte, at int64) error {
	f, err := disk.OpenForeign(t.box.path, unix.O_RDWR)
	if err != nil {
		return err
	}
	return errors.Join(f.WriteAt(b, at), f.Close())
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
	a.At, a.Newline = t.size(), !whole
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
