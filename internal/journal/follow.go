package journal

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strconv"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// write puts the lines of one commit in their places. fresh means that none of them is there yet; otherwise write adds
// only what is missing.
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

// show writes the cursor and the entry in flight, and marks the record as followed. The cursor comes first: until the
// entry in flight is replaced, it stands before the cursor and so counts as answered, which it is.
func (s *Store) show() error {
	cursor := strconv.AppendInt(nil, s.last.Cursor, 10)
	if err := s.cursor.overwrite(cursor, 0); err != nil {
		return err
	}
	responded := filepath.Join(s.dir, RespondedName)
	if len(s.last.InFlight) == 0 {
		s.signed = false
		if err := errors.Join(s.inFlight.Close(), disk.Remove(s.inFlight.path), disk.Remove(responded)); err != nil {
			return err
		}
	} else {
		if err := s.inFlight.overwrite(s.last.InFlight, ' '); err != nil {
			return err
		}
		if !s.signed {
			s.signed = true
			if err := disk.Create(responded); err != nil {
				return err
			}
		}
	}
	if err := s.log.add(mark{Followed: s.last.Seq, Boot: s.boot}); err != nil {
		return err
	}
	if s.log.end < trimSize {
		return nil
	}
	return s.shorten()
}

// overwrite replaces a small file's content in place, which costs far less than a new file and a rename. pad, unless 0,
// fills up content that is shorter than before; without pad a new file is published. After a kill during the write the
// journal restores the content.
func (f *File) overwrite(content []byte, pad byte) error {
	const maxPad = 64 << 10
	open, size, err := f.openOrCreate()
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

// writeFile writes the lines of one file, in one write if none of them is there yet.
func (s *Store) writeFile(k Kind, all []Line) error {
	if len(all) == 0 {
		return nil
	}
	f, size, err := s.files[k].openOrCreate()
	if err != nil {
		return err
	}
	if b, follow := joined(all); follow && size == all[0].At {
		if err := f.WriteAt(b, size); err != nil {
			return err
		}
	} else {
		for _, l := range all {
			rest, at, err := missing(f, l)
			if err == nil && len(rest) > 0 {
				err = f.WriteAt(rest, at)
			}
			if err != nil {
				return err
			}
		}
	}
	if !kinds[k].synced {
		return nil
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if all[0].At == 0 || size == 0 {
		return disk.SyncDir(s.dir)
	}
	return nil
}

// unschedule removes lines from .scheduled.jsonl by their ids, because their entries are in the queue by now or were
// canceled. The removal is durable when unschedule returns: the lines must not be appended again.
func (s *Store) unschedule(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	gone := map[string]bool{}
	for _, id := range ids {
		gone[id] = true
	}
	file := &s.files[Scheduled]
	f, err := file.Existing()
	if f == nil || err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	path := file.path + ".tmp"
	if err := disk.Remove(path); err != nil {
		return err
	}
	tmp, _, err := disk.OpenWrite(path)
	if err != nil {
		return err
	}
	_, left, err := lines.Keep(&disk.Writer{File: tmp}, io.NewSectionReader(f, 0, info.Size), true, func(l []byte) bool { return !gone[lines.ID(l)] })
	if err == nil && left > 0 {
		err = errors.Join(tmp.Sync(), s.StillLocked())
	}
	if err = errors.Join(err, tmp.Close()); err != nil || left == 0 {
		return errors.Join(err, disk.Remove(path))
	}
	return errors.Join(file.Close(), disk.Rename(path, file.path))
}

// missing returns the part of a committed line that a file lacks, and the offset for it: the whole line, the end that a
// killed write did not reach, or the bytes that a power loss left as zeros. It returns nothing if the line is there. If
// something else stands at the line's offset, somebody has changed the file since, and the line may be anywhere.
func missing(f *disk.File, l Line) (rest []byte, at int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	content := l.Bytes()
	if info.Size >= l.At {
		there := make([]byte, min(int64(len(content)), info.Size-l.At))
		if len(there) > 0 {
			if _, err := f.ReadAt(there, l.At); err != nil {
				return nil, 0, err
			}
		}
		switch {
		case bytes.HasPrefix(content, there):
			return content[len(there):], l.At + int64(len(there)), nil
		case zeroed(there, content):
			return content, l.At, nil
		}
	}
	from := int64(0)
	if l.Kind == Queue {
		from = min(l.At, info.Size) // the queue file only grows
	}
	found, err := lines.Holds(io.NewSectionReader(f, from, info.Size-from), l.content())
	if err != nil || found {
		return nil, 0, err
	}
	whole, err := lines.Ends(f, info.Size)
	l.Newline = !whole
	return l.Bytes(), info.Size, err
}

// zeroed recognises a line that a power loss left as zeros, in whole or in part: the file's length reached
// the disk before its bytes.
func zeroed(there, content []byte) bool {
	for i, b := range there {
		if b != 0 && b != content[i] {
			return false
		}
	}
	return true
}
