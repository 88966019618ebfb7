package journal

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// Place is the position in an append-only file of a reader that outlives its process. The file may be
// rotated, trimmed or edited while nobody reads.
type Place struct {
	Seen
	// Line is a hash of the line before the place, "" if none was read. At is the time of the last wanted
	// line.
	Line string    `json:"line,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

// When returns when a line was written, and whether it is wanted.
type When func(line []byte) (at time.Time, wanted bool)

// PlaceIn returns the start of a file, or with end the end of its last whole line.
func PlaceIn(path string, end bool, now time.Time, when When) (p Place, err error) {
	f, err := OpenState(path)
	if err != nil {
		return p, err
	}
	if f == nil {
		return Place{At: now}, nil
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := reading{place: Place{At: now}, when: when, visit: func([]byte, time.Time) bool { return end }}
	if !end {
		// Lines that were rotated away earlier are older than the first line.
		first, _, err := firstTime(f, when)
		if !first.IsZero() {
			r.place.At = first.Add(-1)
		}
		if err == nil {
			r.place.Seen, err = SeenUpTo(f, 0)
		}
		return r.place, err
	}
	off, err := lines.Start(f, f.Info().Size)
	if err != nil {
		return p, err
	}
	from, err := lines.Back(f, off, 1)
	if err == nil {
		_, err = r.read(f, from, time.Time{})
	}
	return r.place, err
}

// Each visits the wanted lines behind the place, including those of rotated files, until visit returns false.
// It returns the place behind the last line visited. missed says that no file has the line before the place
// any more, so that lines may have gone unread.
func (p Place) Each(path string, when When, visit func(line []byte, at time.Time) bool) (next Place, missed bool, err error) {
	r := reading{path: path, place: p, when: when, visit: visit}
	defer func() { err = errors.Join(err, r.close()) }()
	current, err := OpenState(path)
	if err != nil {
		return p, false, err
	}
	if current != nil {
		r.files = []*disk.File{current}
		// Nearly always.
		if off, there, err := p.in(current, false); err != nil || there {
			if err == nil {
				_, err = r.read(current, off, time.Time{})
			}
			return r.place, false, err
		}
	}
	if err := r.openRotated(); err != nil {
		return p, false, err
	}
	missed, err = r.search(current)
	return r.place, missed, err
}

// In returns where the place is in a file, and whether it is there.
func (p Place) In(f *disk.File) (off int64, there bool, err error) {
	if off, there, err = p.in(f, false); err != nil || there {
		return off, there, err
	}
	return p.in(f, true)
}

// in is In, either for a file that is as it was when the place was noted, or with anywhere for one that holds
// the line before the place.
func (p Place) in(f *disk.File, anywhere bool) (off int64, there bool, err error) {
	if !anywhere {
		off, err = p.Seen.In(f)
		return off, err == nil && p.File == f.Identity() && off == p.Off, err
	}
	if p.Line == "" {
		return 0, false, nil
	}
	err = lines.EachRecord(io.NewSectionReader(f, 0, f.Info().Size), 0, func(_, end int64, l []byte, whole bool) bool {
		if there = whole && lines.ID(l) == p.Line; there {
			off = end
		}
		return !there
	})
	return off, there, err
}

// reading is one call of [Place.Each].
type reading struct {
	path  string
	files []*disk.File // those that are open
	place Place
	when  When
	visit func(line []byte, at time.Time) bool
}

func (r *reading) close() (err error) {
	for _, f := range r.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

const (
	// maxBeside bounds how many names of a folder are read, and maxRotated how many rotated files are opened.
	maxBeside, maxRotated = 100_000, 64
	// slack is how much older a file's time may be than its last line.
	slack = time.Minute
)

// openRotated opens the files that look like rotated copies by their names.
func (r *reading) openRotated() error {
	dir, name := filepath.Split(r.path)
	names, _, err := disk.Names(filepath.Clean(dir), maxBeside)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, n := range names {
		if rest, is := strings.CutPrefix(n, name); !is || !rotated(rest) {
			continue
		}
		f, err := disk.OpenRead(filepath.Join(dir, n))
		if err != nil {
			continue // not one of heartbeat's files
		}
		if old := time.Unix(0, f.Info().Mtime).Add(slack).Before(r.place.At); old || len(r.files) > maxRotated {
			_ = f.Close() // only read
			continue
		}
		r.files = append(r.files, f)
	}
	return nil
}

// rotated reports whether rest, what follows the file's name, marks a rotated copy. Compressed copies are not
// read.
func rotated(rest string) bool {
	if rest == "" || !strings.ContainsRune(".-_~", rune(rest[0])) || strings.HasPrefix(rest, ".foreign") {
		return false
	}
	return !slices.Contains([]string{".tmp", ".gz", ".xz", ".bz2", ".zst"}, filepath.Ext(rest))
}

// search finds the place in one of the files, and reads on from there through later ones.
func (r *reading) search(current *disk.File) (missed bool, err error) {
	for _, anywhere := range []bool{false, true} {
		for _, f := range r.files {
			off, there, err := r.place.in(f, anywhere)
			if err != nil && f == current {
				return false, err
			}
			if err != nil || !there {
				continue // a file without lines is not a rotated copy
			}
			more, err := r.read(f, off, time.Time{})
			if f == current || err != nil || !more {
				return false, err
			}
			return false, r.later(f, current)
		}
	}
	missed = r.place.Line != ""
	return missed, r.later(nil, current)
}

// later reads the files whose first line is younger than the place, oldest first. If last is nil, no file has
// the place, and only the younger lines of every file are read.
func (r *reading) later(last, current *disk.File) error {
	type begun struct {
		*disk.File
		at time.Time
	}
	var all []begun
	for _, f := range r.files {
		at, any, err := firstTime(f, r.when)
		if f != last && any && err == nil && (f == current || last == nil || at.After(r.place.At)) {
			all = append(all, begun{f, at})
		}
	}
	slices.SortStableFunc(all, func(a, b begun) int {
		if (a.File == current) != (b.File == current) {
			return map[bool]int{true: 1, false: -1}[a.File == current]
		}
		return a.at.Compare(b.at)
	})
	for _, f := range all {
		if last != nil { // somebody may have appended to it until the later file began
			if more, err := r.read(last, r.place.Off, time.Time{}); err != nil || !more {
				return err
			}
		}
		after := time.Time{}
		if last == nil {
			after = r.place.At
		}
		if more, err := r.read(f.File, 0, after); err != nil || !more {
			return err
		}
		if last != nil {
			last = f.File
		}
	}
	return nil
}

// read visits lines of a file from an offset on, only younger ones if after is not zero, and moves the place
// along. It reports whether visit wants more.
func (r *reading) read(f *disk.File, off int64, after time.Time) (more bool, err error) {
	info, err := f.Stat()
	if err != nil || info.Size < off {
		return true, err
	}
	more, end := true, off
	var last []byte
	err = lines.EachRecord(io.NewSectionReader(f, off, info.Size-off), off, func(_, to int64, l []byte, whole bool) bool {
		if !whole {
			return false
		}
		if at, wanted := r.when(l); wanted && (after.IsZero() || at.IsZero() || at.After(after)) {
			if more = r.visit(l, at); !at.IsZero() {
				r.place.At = at
			}
		}
		last, end = append(last[:0], l...), to
		return more
	})
	if err != nil {
		return false, err
	}
	if r.place.Seen, err = SeenUpTo(f, end); last != nil {
		r.place.Line = lines.ID(last)
	}
	return more, err
}

// firstTime returns when the first wanted line was written, if there is any.
func firstTime(f *disk.File, when When) (at time.Time, any bool, err error) {
	err = lines.EachRecord(io.NewSectionReader(f, 0, f.Info().Size), 0, func(_, _ int64, l []byte, whole bool) bool {
		if whole {
			at, any = when(l)
		}
		return whole && !any
	})
	return at, any, err
}
