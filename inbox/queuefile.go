package inbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"

	"golang.org/x/sys/unix"
)

// Mark is the state of the queue file at one moment.
type Mark struct {
	Size  int64
	Mtime int64 // nanoseconds since 1970
}

// openFile opens the queue file as it is now.
func (t *Tx) openFile() error {
	err := t.file.Close()
	if err != nil {
		return err
	}
	t.file, err = disk.OpenForeign(t.box.path, unix.O_RDONLY)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read inbox: %w", err)
	}
	return nil
}

func (t *Tx) queueSize() int64 {
	if t.file == nil {
		return 0
	}
	return t.file.Info().Size
}

func (t *Tx) queueMark() Mark {
	if t.file == nil {
		return Mark{}
	}
	return Mark{Size: t.file.Info().Size, Mtime: t.file.Info().Mtime}
}

// inFlightEnd is where the entry in flight ends in the queue file, 0 if it is not
// in that file.
func (t *Tx) inFlightEnd() int64 { return endOf(t.inFlight) }

// settledEnd is how far the queue file was delivered or settled.
func (t *Tx) settledEnd() int64 { return max(t.st.Cursor, endOf(t.inFlight), endOf(t.redeliver)) }

func endOf(d *Delivery) int64 {
	if d == nil || d.Detached {
		return 0
	}
	return d.EndOffset
}

func (t *Tx) tornTail() (bool, error) {
	if t.file == nil {
		return false, nil
	}
	whole, err := lines.Ends(t.file, t.queueSize())
	if err != nil {
		return false, fmt.Errorf("read inbox: %w", err)
	}
	return !whole, nil
}

// beingWritten reports whether the queue file ends in a line that has no newline,
// is not blank, and was not delivered yet.
func (t *Tx) beingWritten() (bool, error) {
	torn, err := t.tornTail()
	if err != nil || !torn {
		return false, err
	}
	settled := max(t.st.Cursor, t.inFlightEnd())
	if settled >= t.queueSize() {
		return false, nil
	}
	// A longer line is not blank, unless it is zeros: a file that others
	// lengthened.
	from, err := t.file.SkipZeros(max(settled, t.queueSize()-MaxLine-2), t.queueSize())
	if err != nil || from == t.queueSize() {
		return false, err
	}
	tail := io.NewSectionReader(t.file, from, t.queueSize()-from)
	start, err := lines.Start(tail, tail.Size())
	if err != nil {
		return false, fmt.Errorf("read inbox: %w", err)
	}
	l, err := t.lineAt(from + start)
	return err == nil && !l.blank(), ignoreEnd(err)
}

// lineAt reads the first line from off on, where a line starts. It skips zeros
// there: the hole of a compaction that another program set the cursor back into,
// a copy of one, or what a power loss left of a line.
func (t *Tx) lineAt(off int64) (line, error) { return t.lineUpTo(off, MaxLine) }

// lineUpTo is lineAt for a line of which it keeps no more than most bytes.
func (t *Tx) lineUpTo(off int64, most int) (line, error) {
	off, err := t.file.SkipZeros(off, t.queueSize())
	if err != nil {
		return line{}, fmt.Errorf("read inbox: %w", err)
	}
	return readLine(t.file, off, t.queueSize(), most)
}
