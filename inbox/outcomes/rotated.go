package outcomes

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// When returns when a line was written, and whether it is wanted.
type When func(line []byte) (at time.Time, wanted bool)

// startAt returns the start of a file, or with end the end of its last whole line.
func startAt(path string, end bool, now time.Time, when When) (p Place, err error) {
	err = journal.Reading(path, func(f *disk.File) (err error) {
		off := int64(0)
		if end {
			off, err = lines.Start(f, f.Info().Size)
		} else if first, any, failed := firstTime(f, when); any && !first.IsZero() {
			now, err = first.Add(-1), failed // lines that were rotated away earlier are older than the first line
		}
		if err == nil {
			p, err = placeAt(f, off)
		}
		return err
	})
	p.At = now
	return p, err
}

// EachBehind visits the wanted lines behind a place, including those of rotated files, until visit returns false.
// It returns the place behind the last line visited. missed says that no file has the line before the place
// any more, so that lines may have gone unread.
func EachBehind(p Place, path string, when When, visit func(line []byte, at time.Time) bool) (next Place, missed bool, err error) {
	r := reading{path: path, place: p, when: when, visit: visit}
	defer func() {
		for _, f := range r.files {
			err = errors.Join(err, f.Close())
		}
	}()
	current, err := journal.OpenState(path)
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

// reading is one call of [EachBehind].
type reading struct {
	path  string
	files []*disk.File // all open: the current file, and rotated ones
	place Place
	when  When
	visit func(line []byte, at time.Time) bool
}

const (
	maxRotated = 64 // rotated files that are opened
	// slack is how much older a file's time may be than its last line, unless the clock was set back.
	slack = time.Minute
)

// openRotated opens the files whose names look like those of rotated copies. It opens them after the current file: so
// they have everything that was committed before the lines of that.
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
			continue // it is not one of heartbeat's files
		}
		if last := time.Unix(0, f.Info().Mtime).Add(slack); last.Before(r.place.At) && f.Identity() != r.place.File || len(r.files) > maxRotated {
			_ = f.Close() // only read
			continue
		}
		r.files = append(r.files, f)
	}
	return nil
}

// rotated reports whether rest, what follows the file's name, marks a rotated copy. Compressed copies are not read.
func rotated(rest string) bool {
	if rest == "" || !strings.ContainsRune(".-_~", rune(rest[0])) || strings.HasPrefix(rest, ".foreign") {
		return false
	}
	return !slices.Contains([]string{".tmp", ".gz", ".xz", ".bz2", ".zst"}, filepath.Ext(rest))
}

// search finds the place in one of the files, and reads from there on, and then the younger files. missed means that no
// file has the place; search then reads the younger lines of every file.
func (r *reading) search(current *disk.File) (missed bool, err error) {
	from, off, err := r.find(current)
	if err != nil {
		return false, err
	}
	missed = from == nil && r.place.Line != ""
	if from != nil {
		if more, err := r.read(from, off, time.Time{}); err != nil || !more || from == current {
			return false, err
		}
	}
	for _, f := range r.younger(from, current) {
		after := time.Time{}
		if from == nil {
			after = r.place.At
		}
		if more, err := r.read(f, 0, after); err != nil || !more {
			return missed, err
		}
	}
	return missed, nil
}

func (r *reading) find(current *disk.File) (from *disk.File, off int64, err error) {
	for _, anywhere := range []bool{false, true} {
		for _, f := range r.files {
			off, there, err := r.place.in(f, anywhere)
			if there || err != nil && f == current { // an error of another file does not matter: it may not be heartbeat's
				return f, off, err
			}
		}
	}
	return nil, 0, nil
}

// younger returns the files whose first line is younger than the place, oldest first, and the current file last. If no
// file has the place (from is nil), it returns all files that have lines.
func (r *reading) younger(from, current *disk.File) (all []*disk.File) {
	begun := map[*disk.File]time.Time{}
	for _, f := range r.files {
		at, any, err := firstTime(f, r.when)
		if f != from && any && err == nil && (f == current || from == nil || at.After(r.place.At)) {
			all, begun[f] = append(all, f), at
		}
	}
	slices.SortStableFunc(all, func(a, b *disk.File) int {
		switch current {
		case a:
			return 1
		case b:
			return -1
		}
		return begun[a].Compare(begun[b])
	})
	return all
}

// read visits lines of a file from an offset on, only younger ones if after is not zero. It reports whether
// visit wants more.
func (r *reading) read(f *disk.File, off int64, after time.Time) (more bool, err error) {
	return r.place.read(f, off, func(_ int64, l []byte) bool {
		at, wanted := r.when(l)
		if !wanted || !after.IsZero() && !at.IsZero() && !at.After(after) {
			return true
		}
		if !at.IsZero() {
			r.place.At = at
		}
		return r.visit(l, at)
	})
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
