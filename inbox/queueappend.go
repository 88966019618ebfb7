package inbox

import (
	"errors"
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
	rest, at, err := missing(f, a)
	switch {
	case err != nil || len(rest) == 0:
		return err
	case at < f.Info().Size:
		return t.mendQueue(rest, at)
	}
	at, err = f.Append(rest)
	if err == nil {
		t.appendedEnd = at + int64(len(rest))
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
