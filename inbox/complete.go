package inbox

import (
	"bytes"
	"io"

	"heartbeat/internal/disk"
)

// missing says what a file lacks of a committed line, and where that goes: all
// of it, or the end that a killed write did not get to, or the bytes in whose
// place a power loss left zeros; nothing where the line is there. If something
// else stands at the line's offset, the file was changed by others since, and
// the line may stand anywhere.
func missing(f *disk.File, a appendRecord) (rest []byte, at int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	content := a.bytes()
	if info.Size >= a.At {
		there := make([]byte, min(int64(len(content)), info.Size-a.At))
		if len(there) > 0 {
			if _, err := f.ReadAt(there, a.At); err != nil {
				return nil, 0, err
			}
		}
		switch {
		case bytes.HasPrefix(content, there):
			return content[len(there):], a.At + int64(len(there)), nil
		case zeroed(there, content):
			return content, a.At, nil
		}
	}
	from := int64(0)
	if a.File == queueName {
		from = min(a.At, info.Size) // it only grows
	}
	found, err := holdsLine(io.NewSectionReader(f, from, info.Size-from), a.content())
	if err != nil || found {
		return nil, 0, err
	}
	whole, err := endsLine(f, info.Size)
	a.Newline = !whole
	return a.bytes(), info.Size, err
}

// zeroed recognises a line of which a power loss left zeros: the file's length
// was on the disk before its bytes.
func zeroed(there, content []byte) bool {
	for i, b := range there {
		if b != 0 && b != content[i] {
			return false
		}
	}
	return true
}
