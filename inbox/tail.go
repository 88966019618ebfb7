package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"heartbeat/internal/disk"
)

// Tail reads the lines that come to an append-only file, also when somebody
// rotates it away, trims it or makes it anew. It takes no lock.
type Tail struct {
	path string
	file *disk.File
	off  int64
	last []byte // the line that was read last
	at   int64  // where that starts
}

// TailResults reads .results.jsonl (a [Result] a line) from its last n lines on,
// from its start if n is negative.
func (b *Inbox) TailResults(n int) (*Tail, error) { return newTail(b.file(resultsName), n) }

// TailDeadLetters reads .dead-letter.jsonl as TailResults does the results: a
// [DeadLetter] a line, and marks of what was requeued, see [ParseLetter].
func (b *Inbox) TailDeadLetters(n int) (*Tail, error) { return newTail(b.file(deadLetterName), n) }

// TailEvents reads .events.jsonl (an [Event] a line) as TailResults does the
// results.
func (b *Inbox) TailEvents(n int) (*Tail, error) { return newTail(b.file(eventsName), n) }

func newTail(path string, n int) (*Tail, error) {
	t := &Tail{path: path}
	p := point{}
	var err error
	if n >= 0 {
		p, err = pointAtEnd(path)
	}
	if err == nil {
		err = t.start(p)
	}
	if err == nil && n > 0 && t.file != nil {
		var off int64
		if off, err = backLines(t.file, t.off, n); err == nil {
			err = t.seek(off)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), t.Close())
	}
	return t, nil
}

// point is an offset in a file that may not be that file later.
type point struct {
	file string // its identity, empty where there was none
	off  int64
}

// pointAtEnd is the end of the file's last whole line.
func pointAtEnd(path string) (p point, err error) {
	f, err := disk.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return point{}, nil
	}
	if err != nil {
		return point{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	off, err := lineStart(f, f.Info().Size)
	return point{f.Identity(), off}, err
}

// start opens the file at a point, or at its start where it is another file.
func (t *Tail) start(p point) error {
	f, err := disk.OpenRead(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	t.file = f
	if p.file != f.Identity() || p.off > f.Info().Size {
		return nil
	}
	return t.seek(p.off)
}

// seek goes to the end of a line, and keeps that line in mind.
func (t *Tail) seek(off int64) error {
	t.off, t.last = off, nil
	if off == 0 {
		return nil
	}
	from, err := lineStart(t.file, off-1)
	if err != nil {
		return err
	}
	return eachOwnLine(io.NewSectionReader(t.file, from, off-from), from, func(_, _ int64, l []byte, _ bool) bool {
		t.last = slices.Clone(l)
		return false
	})
}

// Lines calls f for every whole line that has come since; the line is valid until
// f returns. A file that took the old one's place, or was written anew, is read
// from behind the line that was read last, if it has that, or else from its start.
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
	current, err := disk.OpenRead(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it may come back
	}
	if err != nil {
		return err
	}
	if t.file != nil && current.Identity() == t.file.Identity() {
		return current.Close()
	}
	err = t.drain(f) // what came before the old file was moved away
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

// knownSpan is how much of the line that was read last is looked at again.
const knownSpan = 4 << 10

// known reports whether the line that was read last still ends where it did: if
// not, the file was truncated or written anew.
func (t *Tail) known() (bool, error) {
	if t.file == nil || t.off == 0 {
		return true, nil
	}
	info, err := t.file.Stat()
	if err != nil || info.Size < t.off {
		return false, err
	}
	if t.last == nil || len(t.last) > MaxLine { // not all of it is kept
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

// skipKnown finds the place behind the line that was read last, or the start.
func (t *Tail) skipKnown() error {
	t.off = 0
	if t.last == nil {
		return nil
	}
	return eachOwnLine(io.NewSectionReader(t.file, 0, t.file.Info().Size), 0, func(_, end int64, l []byte, whole bool) bool {
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
	return eachOwnLine(io.NewSectionReader(t.file, from, info.Size-from), from, func(start, end int64, l []byte, whole bool) bool {
		if whole {
			t.off, t.last, t.at = end, slices.Clone(l), start
			f(l)
		}
		return true
	})
}

// Close ends the reading.
func (t *Tail) Close() error {
	f := t.file
	t.file = nil
	return f.Close()
}

// lineStart is where the line starts that goes on at off, or off if one starts
// there: behind the last newline before off.
func lineStart(f io.ReaderAt, off int64) (int64, error) { return backLines(f, off, 0) }

// backLines is the offset behind the newline that n other newlines follow before
// off, or 0: with off at the end of whole lines, where the last n of them start.
func backLines(f io.ReaderAt, off int64, n int) (int64, error) {
	chunk := make([]byte, readChunk)
	var zeros zeroRun
	for off > 0 {
		part := chunk[:min(int64(len(chunk)), off)]
		if _, err := f.ReadAt(part, off-int64(len(part))); err != nil && err != io.EOF {
			return 0, err
		}
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] != '\n' {
				continue
			}
			if n == 0 {
				return off - int64(len(part)-i) + 1, nil
			}
			n--
		}
		if err := zeros.add(part); err != nil {
			return 0, err
		}
		off -= int64(len(part))
	}
	return 0, nil
}

// At is the offset of the line that [Tail.Lines] has called its function with.
func (t *Tail) At() int64 { return t.at }

// Torn is the offset of a last line that has no newline, -1 if there is none:
// somebody is writing it, or was killed at that.
func (t *Tail) Torn() (int64, error) {
	if t.file == nil {
		return -1, nil
	}
	info, err := t.file.Stat()
	if err != nil || info.Size <= t.off {
		return -1, err
	}
	if whole, err := endsLine(t.file, info.Size); err != nil || whole {
		return -1, err
	}
	return t.off, nil
}
