package inbox

import (
	"bytes"
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// queueName stands for the queue file where a record says what it appends.
const queueName = "queue"

// writeQueue appends a committed line to the queue file, unless it is there
// already. Other programs append without the lock, so the line may come to
// stand behind the offset that the commit had in mind.
func (t *Tx) writeQueue(a appendRecord) (err error) {
	f, _, err := disk.OpenAppend(t.box.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	there, err := began(f, a)
	if err != nil {
		return err
	}
	content := a.bytes()
	switch {
	case f.Info().Size >= a.At && bytes.HasPrefix(content, there):
		content = content[len(there):]
	case zeroed(there, content):
		return t.mendQueue(a)
	default:
		if content, err = behind(f, a); err != nil {
			return err
		}
	}
	if len(content) == 0 {
		return nil
	}
	at, err := f.Append(content)
	t.appendedEnd = at + int64(len(content))
	return err
}

// began reads what stands where the line belongs, as far as the line would go.
func began(f *disk.File, a appendRecord) ([]byte, error) {
	n := min(int64(len(a.bytes())), max(0, f.Info().Size-a.At))
	there := make([]byte, n)
	if n == 0 {
		return there, nil
	}
	_, err := f.ReadAt(there, a.At)
	return there, err
}

// zeroed recognises a line of which a power loss left zeros: the file's length
// was on the disk before its bytes.
func zeroed(there, content []byte) bool {
	if len(there) == 0 || len(there) > len(content) {
		return false
	}
	for i, b := range there {
		if b != 0 && b != content[i] {
			return false
		}
	}
	return true
}

func (t *Tx) mendQueue(a appendRecord) error {
	f, err := disk.OpenForeign(t.box.path, unix.O_RDWR)
	if err != nil {
		return err
	}
	return errors.Join(f.WriteAt(a.bytes(), a.At), f.Close())
}

// behind is what to append where others wrote in the line's place: nothing if it
// stands further on.
func behind(f *disk.File, a appendRecord) ([]byte, error) {
	size := f.Info().Size
	if a.At < size {
		found, err := anyLine(io.NewSectionReader(f, a.At, size-a.At), "", func(l []byte) bool { return bytes.Equal(l, a.Line) })
		if err != nil || found {
			return nil, err
		}
	}
	whole, err := endsLine(f, size)
	a.Newline = !whole
	return a.bytes(), err
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
// meanwhile.
func (t *Tx) planQueueAppend(line []byte) (appendRecord, error) {
	a := appendRecord{File: queueName, Line: line, Generation: t.st.QueueGen}
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
