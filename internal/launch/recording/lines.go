package recording

import (
	"bytes"

	"heartbeat/internal/disk"
)

// lines writes only whole lines. If a full disk takes part of a line, it cuts that
// part off, so that the recording stays playable.
type lines struct {
	file *disk.File
	size int64
	rest []byte // of a line that is not complete yet
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
		_ = l.file.Truncate(l.size) // if it fails, the next lines overwrite the part
	}
	l.rest = append(l.rest[:0], l.rest[whole:]...)
	return len(b), err
}
