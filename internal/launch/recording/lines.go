package recording

import (
	"bytes"

	"heartbeat/internal/disk"
)

// lines writes whole lines only: what a full disk took of one is cut off again, so
// that the file can be played as far as it goes.
type lines struct {
	file *disk.File
	size int64
	rest []byte // of a line that is not whole yet
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	whole := bytes.LastIndexByte(l.rest, '\n') + 1
	if whole == 0 {
		return len(b), nil
	}
	err := l.file.WriteAt(l.rest[:whole], l.size)
	if err == nil {
		l.size += int64(whole)
	} else {
		_ = l.file.Truncate(l.size) // the next lines are written over it
	}
	l.rest = append(l.rest[:0], l.rest[whole:]...)
	return len(b), err
}
