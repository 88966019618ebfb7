package journal

import (
	"bytes"
	"errors"
	"io"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// unschedule takes lines out of .scheduled.jsonl, given by their ids: their entries
// are in the queue by now, or were canceled. It is durable when it returns, since
// they must not be appended once more.
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
	w := &replacing{path: file.path}
	err = lines.EachRaw(io.NewSectionReader(f, 0, info.Size), func(l []byte, _ bool) error {
		if gone[lines.ID(bytes.TrimSuffix(bytes.TrimSuffix(l, []byte("\n")), []byte("\r")))] {
			return nil
		}
		return w.add(l)
	})
	if err == nil && w.size() == info.Size {
		return w.drop()
	}
	if err == nil {
		err = s.StillLocked()
	}
	if err != nil {
		return errors.Join(err, w.drop())
	}
	return errors.Join(file.Close(), w.publish())
}

// replacing is the new content of a file. What is short is held and published at once;
// the rest is written as it comes.
type replacing struct {
	path string
	tmp  *disk.File // nil as long as it is short
	end  int64      // how much was written
	held []byte
}

const heldContent = 1 << 20

func (w *replacing) size() int64 { return w.end + int64(len(w.held)) }

func (w *replacing) add(b []byte) error {
	if w.held = append(w.held, b...); len(w.held) < heldContent {
		return nil
	}
	return w.flush()
}

func (w *replacing) flush() (err error) {
	if w.tmp == nil {
		if err := disk.Remove(w.path + ".tmp"); err != nil {
			return err
		}
		if w.tmp, _, err = disk.OpenWrite(w.path + ".tmp"); err != nil {
			return err
		}
	}
	err = w.tmp.WriteAt(w.held, w.end)
	w.end, w.held = w.end+int64(len(w.held)), w.held[:0]
	return err
}

func (w *replacing) drop() error {
	if w.tmp == nil {
		return nil
	}
	return errors.Join(w.tmp.Close(), disk.Remove(w.path+".tmp"))
}

func (w *replacing) publish() error {
	if w.tmp == nil {
		return disk.Publish(w.path, w.held, true)
	}
	if err := w.flush(); err != nil {
		return errors.Join(err, w.drop())
	}
	if err := errors.Join(w.tmp.Sync(), w.tmp.Close()); err != nil {
		return err
	}
	return disk.Rename(w.path+".tmp", w.path)
}
