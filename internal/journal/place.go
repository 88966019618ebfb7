package journal

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// Place is how far a reader that outlives its process has come in an append-only file, which
// may be rotated, trimmed or edited while nobody reads.
type Place struct {
	Seen
	// Line is a hash of the line before the place, "" where none was read, and At the time of
	// the last line that was wanted.
	Line string    `json:"line,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

// When tells when a line was written, and whether it is one to read.
type When func(line []byte) (at time.Time, wanted bool)

// PlaceIn is the start of a file, or with end the end of its last whole line.
func PlaceIn(path string, end bool, now time.Time, when When) (p Place, err error) {
	f, err := disk.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Place{At: now}, nil
	}
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := reading{place: Place{At: now}, when: when, visit: func([]byte, time.Time) bool { return end }}
	if !end {
		// What was rotated away before belongs to the time before the first line.
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

// Each visits the wanted lines behind the place, also those of files that the file was rotated
// to, until visit returns false. It returns the place behind the last of them; missed says that
// the line before the place is in no file any more, so that lines may have gone unread.
func (p Place) Each(path string, when When, visit func(line []byte, at time.Time) bool) (next Place, missed bool, err error) {
	r := reading{path: path, place: p, when: when, visit: visit}
	defer func() { err = errors.Join(err, r.close()) }()
	current, err := disk.OpenRead(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
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

// In is where the place is in a file, and whether it is there.
func (p Place) In(f *disk.File) (off int64, there bool, err error) {
	if off, there, err = p.in(f, false); err != nil || there {
		return off, there, err
	}
	return p.in(f, true)
}

// in is In, for a file that is as it was when the place was noted, or with anywhere for one
// that holds the line before it.
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
	// maxBeside is how many names of a folder are looked at, and maxRotated how many files that
	// may be rotated ones.
	maxBeside, maxRotated = 100_000, 64
	// slack is how much a file's time may lie before that of its last line.
	slack = time.Minute
)

// openRotated opens the files that the file was rotated to, as their names say.
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
			continue // nothing of ours
		}
		if old := time.Unix(0, f.Info().Mtime).Add(slack).Before(r.place.At); old || len(r.files) > maxRotated {
			_ = f.Close() // only read
			continue
		}
		r.files = append(r.files, f)
	}
	return nil
}

// rotated reports whether that, behind the name of a file, may be of one that it was rotated to.
// One that was compressed is not read.
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
				continue // it is no file of lines, and so none of ours
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

// later reads the files whose first line is younger than what was read, the oldest first.
// Without a last file none is known, and of every file what is younger is read.
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
		if last != nil { // somebody may have written to it until there was a later one
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

// read visits lines of a file from an offset on, those after a time alone if it is not zero, and
// moves the place along. It reports whether visit wants more.
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

// firstTime is when the first line that is wanted was written, if there is any.
func firstTime(f *disk.File, when When) (at time.Time, any bool, err error) {
	err = lines.EachRecord(io.NewSectionReader(f, 0, f.Info().Size), 0, func(_, _ int64, l []byte, whole bool) bool {
		if whole {
			at, any = when(l)
		}
		return whole && !any
	})
	return at, any, err
}
