package outcomes

import (
	"io"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

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

// in returns where the place is in a file, and whether it is there: either in a file that is as it was when
// the place was noted, or with anywhere in one that holds the line before the place.
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

// read visits the whole lines that a file had when it was last looked at, from an offset on and until visit
// returns false. It moves the place behind them.
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
