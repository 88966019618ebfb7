package outcomes

import (
	"errors"
	"fmt"
	"io"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// Tail reads the lines that are added to an append-only file, even if somebody rotates the file away, trims it or
// creates it anew. A Tail takes no lock.
type Tail struct {
	path  string
	file  *disk.File
	place Place
	at    int64 // where the last line starts
}

// OpenTail reads a file from its last n lines on, or from its start if n is negative.
func OpenTail(path string, n int) (*Tail, error) {
	t, err := openTail(path, func(f *disk.File) (int64, error) {
		if n < 0 {
			return 0, nil
		}
		end, err := lines.Start(f, f.Info().Size)
		if err != nil {
			return 0, err
		}
		return lines.Back(f, end, n)
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return t, nil
}

// tailFrom reads a file from where it was last seen, or from its start if it is another file by now.
func tailFrom(path string, seen journal.Seen) (*Tail, error) { return openTail(path, seen.In) }

func openTail(path string, from func(f *disk.File) (int64, error)) (*Tail, error) {
	f, err := journal.OpenState(path)
	if f == nil || err != nil {
		return &Tail{path: path}, err
	}
	t := &Tail{path: path, file: f}
	off, err := from(f)
	if err == nil {
		t.place, err = placeAt(f, off)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Lines calls f for every whole line that was added since the last call; the line is valid until f returns. In a file
// that was replaced or rewritten, reading continues behind the last line read, or at the start if that line is gone.
func (t *Tail) Lines(f func(line []byte)) error {
	if err := t.drain(f); err != nil {
		return err
	}
	current, err := journal.OpenState(t.path)
	if current == nil || err != nil {
		return err // a file that is gone may come back
	}
	if t.file != nil && current.Identity() == t.file.Identity() {
		return current.Close()
	}
	err = errors.Join(t.drain(f), t.file.Close()) // lines may have come before the old file was moved away
	t.file = current
	if err != nil {
		return err
	}
	return t.drain(f)
}

func (t *Tail) drain(f func(line []byte)) error {
	if t.file == nil {
		return nil
	}
	if _, err := t.file.Stat(); err != nil {
		return err
	}
	off, there, err := t.place.in(t.file, false)
	if err == nil && !there {
		off, _, err = t.place.in(t.file, true)
	}
	if err != nil {
		return err
	}
	_, err = t.place.read(t.file, off, func(start int64, l []byte) bool {
		t.at = start
		f(l)
		return true
	})
	return err
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
	if err != nil || info.Size <= t.place.Off {
		return -1, err
	}
	if whole, err := lines.Ends(t.file, info.Size); err != nil || whole {
		return -1, err
	}
	return t.place.Off, nil
}

// Place is the position in an append-only file of a reader that outlives its process. The file may be
// rotated, trimmed or edited while nobody reads.
type Place struct {
	journal.Seen
	// Line is a hash of the line before the place, "" if none was read. At is the time of the last wanted line.
	Line string    `json:"line,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

// placeAt returns the place behind the line that ends at an offset.
func placeAt(f *disk.File, off int64) (p Place, err error) {
	if p.Seen, err = journal.SeenUpTo(f, off); err != nil || off == 0 {
		return p, err
	}
	from, err := lines.Start(f, off-1)
	if err != nil {
		return p, err
	}
	err = lines.EachRecord(io.NewSectionReader(f, from, off-from), from, func(_, _ int64, l []byte, _ bool) bool {
		p.Line = lines.ID(l)
		return false
	})
	return p, err
}

// in returns the place's offset in a file, and whether the file has it. Without anywhere, the file must have at most
// grown since the place was noted. With anywhere, it needs to hold the line before the place.
func (p Place) in(f *disk.File, anywhere bool) (off int64, there bool, err error) {
	if !anywhere {
		off, err = p.Seen.In(f)
		return off, err == nil && p.File == f.Identity() && off == p.Off, err
	}
	if p.Line == "" {
		return 0, false, nil
	}
	if was, err := journal.SeenUpTo(f, p.Off); err != nil || was.Before == p.Before && p.Off > 0 {
		return p.Off, err == nil, err
	}
	err = lines.EachRecord(io.NewSectionReader(f, 0, f.Info().Size), 0, func(_, end int64, l []byte, whole bool) bool {
		if there = whole && lines.ID(l) == p.Line; there {
			off = end
		}
		return !there
	})
	return off, there, err
}

// read visits the whole lines that a file had at its last Stat, from an offset on and until visit returns false. It
// moves the place behind them.
func (p *Place) read(f *disk.File, off int64, visit func(start int64, line []byte) bool) (more bool, err error) {
	more, end := true, off
	err = lines.EachRecord(io.NewSectionReader(f, off, max(0, f.Info().Size-off)), off, func(start, to int64, l []byte, whole bool) bool {
		if whole {
			more, end = visit(start, l), to
		}
		return whole && more
	})
	if err != nil {
		return false, err
	}
	if end == off && p.File == f.Identity() && p.Off == off && p.Mtime == f.Info().Mtime {
		return more, nil
	}
	next, err := placeAt(f, end)
	if next.At = p.At; end == 0 {
		next.Line = p.Line // the file was emptied, and may be written anew
	}
	*p = next
	return more, err
}
