package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// Tail reads the lines that are added to an append-only file, even if somebody rotates it away, trims it or
// creates it anew. It takes no lock.
type Tail struct {
	path string
	file *disk.File
	off  int64
	last []byte // the last line that was read
	at   int64  // where that line starts
}

// OpenTail reads a file from its last n lines on, or from its start if n is negative.
func OpenTail(path string, n int) (*Tail, error) {
	t := &Tail{path: path}
	err := t.start(Seen{})
	if err == nil && n >= 0 && t.file != nil {
		var off int64
		if off, err = lines.Start(t.file, t.file.Info().Size); err == nil && n > 0 {
			off, err = lines.Back(t.file, off, n)
		}
		if err == nil {
			err = t.seek(off)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), t.Close())
	}
	return t, nil
}

// TailFrom reads a file from where it was last seen, or from its start if it is another file by now.
func TailFrom(path string, seen Seen) (*Tail, error) {
	t := &Tail{path: path}
	if err := t.start(seen); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Tail) start(seen Seen) error {
	f, err := OpenState(t.path)
	if f == nil || err != nil {
		return err
	}
	t.file = f
	off, err := seen.In(f)
	if err != nil {
		return err
	}
	return t.seek(off)
}

// seek goes to the end of a line, and remembers that line.
func (t *Tail) seek(off int64) error {
	t.off, t.last = off, nil
	if off == 0 {
		return nil
	}
	from, err := lines.Start(t.file, off-1)
	if err != nil {
		return err
	}
	return lines.EachOwn(io.NewSectionReader(t.file, from, off-from), from, func(_, _ int64, l []byte, _ bool) bool {
		t.last = slices.Clone(l)
		return false
	})
}

// Lines calls f for every whole line that was added since; the line is valid until f returns. A file that was
// replaced or rewritten is read behind the last line read, if it has that line, and otherwise from its start.
func (t *Tail) Lines(f func(line []byte)) error {
	if known, err := t.known(); err != nil {
		return err
	} else if !known {
		if err := t.skipKnown(); err != nil {
			return err
		}
	}
	if err := t.drain(f); err != nil {
		return err
	}
	current, err := OpenState(t.path)
	if current == nil || err != nil {
		return err // a file that is gone may come back
	}
	if t.file != nil && current.Identity() == t.file.Identity() {
		return current.Close()
	}
	err = t.drain(f) // lines that came before the old file was moved away
	err = errors.Join(err, t.file.Close())
	t.file = current
	if err != nil {
		return err
	}
	if err := t.skipKnown(); err != nil {
		return err
	}
	return t.drain(f)
}

// knownSpan is how much of the last line read is compared again.
const knownSpan = 4 << 10

// known reports whether the last line read still ends where it did. If not, the file was truncated or
// rewritten.
func (t *Tail) known() (bool, error) {
	if t.file == nil || t.off == 0 {
		return true, nil
	}
	info, err := t.file.Stat()
	if err != nil || info.Size < t.off {
		return false, err
	}
	if t.last == nil || len(t.last) > lines.Max { // not all of the line is kept
		return true, nil
	}
	want := t.last[max(0, len(t.last)-knownSpan):]
	there := make([]byte, min(int64(len(want))+2, t.off))
	if _, err := t.file.ReadAt(there, t.off-int64(len(there))); err != nil && err != io.EOF {
		return false, err
	}
	line, whole := bytes.CutSuffix(there, []byte("\n"))
	return whole && (bytes.HasSuffix(line, want) || bytes.HasSuffix(line, append(want[:len(want):len(want)], '\r'))), nil
}

// skipKnown finds the place behind the last line read, or else the start.
func (t *Tail) skipKnown() error {
	t.off = 0
	if t.last == nil {
		return nil
	}
	return lines.EachOwn(io.NewSectionReader(t.file, 0, t.file.Info().Size), 0, func(_, end int64, l []byte, whole bool) bool {
		if whole && bytes.Equal(l, t.last) {
			t.off = end
			return false
		}
		return true
	})
}

func (t *Tail) drain(f func(line []byte)) error {
	if t.file == nil {
		return nil
	}
	info, err := t.file.Stat()
	if err != nil || info.Size <= t.off {
		return err
	}
	from := t.off
	return lines.EachOwn(io.NewSectionReader(t.file, from, info.Size-from), from, func(start, end int64, l []byte, whole bool) bool {
		if whole {
			t.off, t.last, t.at = end, slices.Clone(l), start
			f(l)
		}
		return true
	})
}

// Close ends the reading. A nil Tail may be closed too.
func (t *Tail) Close() error {
	if t == nil {
		return nil
	}
	f := t.file
	t.file = nil
	return f.Close()
}

// At returns the offset of the line that [Tail.Lines] passed last.
func (t *Tail) At() int64 { return t.at }

// Torn returns the offset of a last line without its newline, -1 if there is none. Somebody is writing that
// line, or was killed while writing it.
func (t *Tail) Torn() (int64, error) {
	if t.file == nil {
		return -1, nil
	}
	info, err := t.file.Stat()
	if err != nil || info.Size <= t.off {
		return -1, err
	}
	if whole, err := lines.Ends(t.file, info.Size); err != nil || whole {
		return -1, err
	}
	return t.off, nil
}
