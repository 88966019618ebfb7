package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// place is how far an append-only file was read. Operators rotate and trim such files.
type place struct {
	File string    `json:"file,omitempty"` // its identity
	Off  int64     `json:"off,omitempty"`
	Text string    `json:"text,omitempty"` // a hash of the bytes before Off
	At   time.Time `json:"at,omitzero"`    // the latest time of a line before Off
}

const (
	// textSpan is how much before a place is compared to tell whether the file is still
	// the same there.
	textSpan = 4 << 10
	// firstSpan bounds what is read of a file that was never read.
	firstSpan = 64 << 20
	// memory is how old an occasion may be to be told where nothing is known of what was
	// told.
	memory = 24 * time.Hour
)

// read visits the whole lines behind the place and returns the new one. visit returns
// the time of a line, zero for none. Where the file is another one, or was rewritten,
// or was never read, only lines that are younger than the ones known are new: fresh
// tells that to visit.
func (p place) read(path string, now time.Time, visit func(line []byte, after time.Time) time.Time) (place, error) {
	f, err := disk.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return place{At: p.At}, nil
	}
	if err != nil {
		return p, err
	}
	defer func() { _ = f.Close() }() // only read
	from, after, err := p.start(f, now)
	if err != nil {
		return p, err
	}
	next := place{File: f.Identity(), Off: from, At: p.At}
	size := f.Info().Size
	err = lines.EachRecord(io.NewSectionReader(f, from, size-from), from, func(_, end int64, l []byte, whole bool) bool {
		if !whole {
			return false
		}
		if at := visit(l, after); at.After(next.At) && !at.After(now) {
			next.At = at
		}
		next.Off = end
		return true
	})
	if err != nil {
		return p, err
	}
	next.Text, err = textBefore(f, next.Off)
	return next, err
}

// start is where to read on, and the time after which lines are new, zero where all are.
func (p place) start(f *disk.File, now time.Time) (int64, time.Time, error) {
	size := f.Info().Size
	if p.File == f.Identity() && p.Off >= 0 && p.Off <= size {
		text, err := textBefore(f, p.Off)
		if err != nil || text == p.Text {
			return p.Off, time.Time{}, err
		}
	}
	after := p.At
	if after.IsZero() {
		after = now.Add(-memory)
	}
	if size <= firstSpan {
		return 0, after, nil
	}
	from, err := lines.Start(f, size-firstSpan)
	return from, after, err
}

func textBefore(f *disk.File, off int64) (string, error) {
	b := make([]byte, min(off, textSpan))
	if _, err := f.ReadAt(b, off-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), nil
}
