package journal

import (
	"bytes"
	"io"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// missing is what a file lacks of a committed line, and where that goes: all of
// it, or the end that a killed write did not get to, or the bytes in whose place a
// power loss left zeros; nothing where the line is there. If something else stands
// at the line's offset, others have changed the file since, and the line may stand
// anywhere.
func missing(f *disk.File, l Line) (rest []byte, at int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	content := l.Bytes()
	if info.Size >= l.At {
		there := make([]byte, min(int64(len(content)), info.Size-l.At))
		if len(there) > 0 {
			if _, err := f.ReadAt(there, l.At); err != nil {
				return nil, 0, err
			}
		}
		switch {
		case bytes.HasPrefix(content, there):
			return content[len(there):], l.At + int64(len(there)), nil
		case zeroed(there, content):
			return content, l.At, nil
		}
	}
	from := int64(0)
	if l.Kind == Queue {
		from = min(l.At, info.Size) // it only grows
	}
	found, err := lines.Holds(io.NewSectionReader(f, from, info.Size-from), l.content())
	if err != nil || found {
		return nil, 0, err
	}
	whole, err := lines.Ends(f, info.Size)
	l.Newline = !whole
	return l.Bytes(), info.Size, err
}

// zeroed recognises a line that a power loss left as zeros, all of it or a part:
// the file's length was on the disk before its bytes.
func zeroed(there, content []byte) bool {
	for i, b := range there {
		if b != 0 && b != content[i] {
			return false
		}
	}
	return true
}
