package inbox

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"heartbeat/internal/disk"
	"heartbeat/internal/words"
)

const (
	spillPrefix = ".dead-letter-"
	spillSuffix = ".raw"
)

// spillName reports whether spill made a file of that name. Dead letters, which
// others may have written, name such files.
func spillName(name string) bool {
	return strings.HasPrefix(name, spillPrefix) && strings.HasSuffix(name, spillSuffix) && filepath.Base(name) == name
}

// spill copies a line that is too long into a file of its own, chunk by chunk,
// and returns that file's name once it would survive a power loss. A second call
// for the same line writes the same file again.
func (b *Inbox) spill(queue io.ReaderAt, l line) (name string, err error) {
	name = fmt.Sprintf("%s%d-%.12s%s", spillPrefix, l.start, l.id, spillSuffix)
	f, _, err := disk.OpenWrite(b.beside(name))
	if err != nil {
		return "", fmt.Errorf("set aside the entry %s: %w", words.Short(l.id), err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	end, err := contentEnd(queue, l)
	if err == nil {
		err = copyRange(f, queue, l.start, end)
	}
	if err == nil {
		err = f.Truncate(end - l.start)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = disk.SyncDir(b.dir)
	}
	if err != nil {
		return "", fmt.Errorf("set aside the entry %s: %w", words.Short(l.id), err)
	}
	return name, nil
}

// contentEnd is where the line ends, without its line end.
func contentEnd(queue io.ReaderAt, l line) (int64, error) {
	end := l.end
	if l.terminated {
		end--
	}
	var last [1]byte
	if _, err := queue.ReadAt(last[:], end-1); err != nil {
		return 0, err
	}
	if last[0] == '\r' {
		end--
	}
	return end, nil
}

func copyRange(to *disk.File, from io.ReaderAt, start, end int64) error {
	chunk := make([]byte, 1<<20)
	for off := start; off < end; off += int64(len(chunk)) {
		part := chunk[:min(int64(len(chunk)), end-off)]
		if _, err := from.ReadAt(part, off); err != nil {
			return err
		}
		if err := to.WriteAt(part, off-start); err != nil {
			return err
		}
	}
	return nil
}
