package journal

import (
	"bytes"
	"errors"
	"path/filepath"
	"strconv"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// write puts the lines of one commit where it said, however much of them is there
// already, which is nothing where the commit is fresh.
func (s *Store) write(all []Line, settled int64, fresh bool) error {
	var by [Queue + 1][]Line
	var unscheduled []string // ids of scheduled lines that are settled
	for _, l := range all {
		by[l.Kind] = append(by[l.Kind], l)
		if l.Kind == Queue && l.Promoted {
			unscheduled = append(unscheduled, lines.ID(l.content()))
		} else if l.Unschedule != "" {
			unscheduled = append(unscheduled, l.Unschedule)
		}
	}
	for k := range kinds {
		if err := s.writeFile(Kind(k), by[k]); err != nil {
			return err
		}
	}
	if err := s.writeQueue(by[Queue], settled, fresh); err != nil {
		return err
	}
	return s.unschedule(unscheduled)
}

// show writes the cursor and what is in flight, and marks the record as followed.
// The cursor comes first: in between, an entry in flight that lies before the
// cursor reads as answered, which it is.
func (s *Store) show() error {
	cursor := strconv.AppendInt(nil, s.last.Cursor, 10)
	if err := s.cursor.overwrite(cursor, 0); err != nil {
		return err
	}
	if err := s.showInFlight(); err != nil {
		return err
	}
	if err := s.log.add(mark{Followed: s.last.Seq, Boot: s.boot}); err != nil {
		return err
	}
	if s.log.end < trimSize {
		return nil
	}
	return s.shorten()
}

func (s *Store) showInFlight() error {
	responded := filepath.Join(s.dir, RespondedName)
	if len(s.last.InFlight) == 0 {
		s.signed = false
		return errors.Join(s.inFlight.remove(), disk.Remove(responded))
	}
	if err := s.inFlight.overwrite(s.last.InFlight, ' '); err != nil {
		return err
	}
	if s.signed {
		return nil
	}
	s.signed = true
	return disk.Create(responded)
}

// overwrite replaces a small file's content in place, which costs far less than a
// new file and a rename. A reader sees no difference as long as the new content is
// not shorter, or pad (if not 0) fills it up; otherwise the file is replaced. The
// journal makes good what a kill during the write leaves.
func (f *File) overwrite(content []byte, pad byte) error {
	const maxPad = 64 << 10
	open, size, err := f.made()
	if err != nil {
		return err
	}
	short := size - int64(len(content))
	if short > 0 && (pad == 0 || short > maxPad) {
		return errors.Join(f.Close(), disk.Publish(f.path, content, false))
	}
	if short > 0 {
		content = append(bytes.Clone(content), bytes.Repeat([]byte{pad}, int(short))...)
	}
	return open.WriteAt(content, 0)
}

// writeFile writes the lines of one file: all at once where none is there yet.
func (s *Store) writeFile(k Kind, all []Line) error {
	if len(all) == 0 {
		return nil
	}
	f, size, err := s.files[k].made()
	if err != nil {
		return err
	}
	if b, follow := joined(all); follow && size == all[0].At {
		err = f.WriteAt(b, size)
	} else {
		err = writeMissing(f, all)
	}
	if err != nil || !kinds[k].synced {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if all[0].At == 0 || size == 0 {
		return disk.SyncDir(s.dir)
	}
	return nil
}

// writeMissing writes what a file lacks of each line.
func writeMissing(f *disk.File, all []Line) error {
	for _, l := range all {
		rest, at, err := missing(f, l)
		if err == nil && len(rest) > 0 {
			err = f.WriteAt(rest, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
