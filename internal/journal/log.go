package journal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"sort"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/lines"
)

const (
	// Size is the length of a new journal, filled up with zeros. A record that overwrites zeros is synced in one
	// step, whereas a growing file needs its new length synced too.
	Size = 256 << 10
	// trimSize is how far the records may reach before the journal is shortened.
	trimSize = Size - 16<<10

	journalBlock = 4 << 10
	// sumLen is how many hex digits of a record's SHA-256 stand before it.
	sumLen = 16
)

// log is .inbox-journal: a line for each commit, `SUM JSON`. The last whole line with a valid sum is the
// state; anything behind it was never synced, so nobody acted on it. A mark, which is not synced, follows
// once the other files show the record before it.
type log struct {
	file *disk.File // nil if there is none
	end  int64      // of the last valid line
}

// openLog returns an empty log if there is no file, and after an error.
func openLog(path string, open func(string) (*disk.File, error)) (*log, error) {
	f, err := ifThere(open(path))
	if err != nil {
		err = fmt.Errorf("read journal: %w", err)
	}
	return &log{file: f}, err
}

// last reads the newest record, backwards from the end of the file and no further than it must. A nil record means that
// nothing was ever committed.
func (j *log) last() (st *Record, m *mark, err error) {
	if j.file == nil || j.file.Info().Size == 0 {
		return nil, nil, nil
	}
	size, err := j.written()
	if err != nil {
		return nil, nil, fmt.Errorf("read journal: %w", err)
	}
	for span := int64(2 * journalBlock); ; span *= 8 {
		if span > largeRecord {
			// The record holds a long line: give memory back before reading more.
			defer debug.FreeOSMemory()
			debug.FreeOSMemory()
			span = size
		}
		from := max(0, size-span)
		tail := make([]byte, size-from)
		if _, err := j.file.ReadAt(tail, from); err != nil {
			return nil, nil, fmt.Errorf("read journal: %w", err)
		}
		tail = bytes.TrimRight(tail, "\x00")
		st, m, end := newest(tail, from == 0)
		if st != nil {
			j.end = from + end
			return st, m, nil
		}
		if from > 0 {
			continue
		}
		if bytes.Count(tail, []byte("\n")) > 1 {
			return nil, nil, lines.Corrupt("read journal %s: no record in it is valid: move it away, and the state goes on from %s and %s (an entry that was given back while its file was replaced is then only in %s, as \"detached\")",
				j.file.Path(), CursorName, InFlightName, Events.Name())
		}
		return nil, nil, nil // the first commit never got through
	}
}

// written returns an offset behind the last record, less than a block behind it. No record holds a zero byte, so a
// block that begins with one is unused. The first block is used.
func (j *log) written() (_ int64, err error) {
	size := j.file.Info().Size
	blocks := int((size + journalBlock - 1) / journalBlock)
	used := 1 + sort.Search(blocks-1, func(i int) bool {
		var first [1]byte
		_, failed := j.file.ReadAt(first[:], int64(i+1)*journalBlock)
		err = cmp.Or(err, failed)
		return first[0] == 0
	})
	return min(size, int64(used)*journalBlock), err
}

// newest finds the last record in the tail of a journal, and the mark behind it. whole means that the tail is the whole
// journal. end is where in tail the last valid line ends.
func newest(tail []byte, whole bool) (st *Record, m *mark, end int64) {
	rest := tail
	for {
		nl := bytes.LastIndexByte(rest, '\n')
		if nl < 0 {
			return nil, nil, 0
		}
		start := bytes.LastIndexByte(rest[:nl], '\n') + 1
		if start == 0 && !whole {
			return nil, nil, 0 // the line begins before the tail does
		}
		body, ok := checkedLine(rest[start:nl])
		if ok && end == 0 {
			end = int64(nl) + 1
		}
		switch {
		case !ok: // never synced, or a mark that a power loss took
		case isMark(body): // a record may have several: each boot adds one, and so does handing over
			older := decodeMark(body)
			if older == nil {
				return nil, nil, 0
			}
			if m == nil {
				m = older
			}
			m.Handed = m.Handed || older.Handed && older.Followed == m.Followed
		default:
			var err error
			if st, err = decodeRecord(body, false); err != nil || m != nil && m.Followed > st.Seq {
				return nil, nil, 0 // the record of this mark is gone
			}
			if m != nil && m.Followed < st.Seq { // a remnant of what a power loss cut off
				m, end = nil, int64(nl)+1
			}
			return st, m, end
		}
		rest = rest[:start]
	}
}

// each calls f for every record up to the end of the last valid one. followed means that a mark of that boot vouches
// for the record.
func (j *log) each(boot string, f func(s *Record, followed bool) error) error {
	all := make([]byte, j.end)
	if _, err := j.file.ReadAt(all, 0); err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	var records [][]byte
	followed := 0
	for l := range bytes.Lines(all) {
		body, ok := checkedLine(bytes.TrimSuffix(l, []byte("\n")))
		switch {
		case !ok:
		case !isMark(body):
			records = append(records, body)
		default:
			if m := decodeMark(body); m != nil && m.Boot == boot {
				followed = len(records)
			}
		}
	}
	for i, body := range records {
		st, err := decodeRecord(body, true)
		if err != nil {
			return fmt.Errorf("read journal %s: %w: %w", j.file.Path(), ErrCorrupt, err)
		}
		if err := f(st, i < followed); err != nil {
			return err
		}
	}
	return nil
}

func checkedLine(l []byte) ([]byte, bool) {
	if len(l) <= sumLen || l[sumLen] != ' ' {
		return nil, false
	}
	body := l[sumLen+1:]
	return body, string(l[:sumLen]) == lines.ID(body)[:sumLen]
}

// sumLine returns the journal's line for a body, in the body's own memory if that has room.
func sumLine(body []byte) []byte {
	sum, n := lines.ID(body), len(body)
	l := append(body, make([]byte, sumLen+2)...)
	copy(l[sumLen+1:], l[:n])
	copy(l, sum[:sumLen])
	l[sumLen], l[len(l)-1] = ' ', '\n'
	return l
}

// commit appends a record and returns once it would survive a power loss. After an error the journal is
// unchanged, or the error matches ErrUncertain.
func (j *log) commit(path string, body []byte) error {
	if j.file == nil {
		f, _, err := disk.OpenWrite(path)
		if err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		j.file = f
	}
	l := sumLine(body)
	first := j.end == 0
	content := l
	if first {
		content = fill(l)
	}
	err := j.file.WriteAt(content, j.end)
	if err == nil {
		err = j.file.Sync()
	}
	if err == nil && first {
		err = disk.SyncDir(filepath.Dir(path))
	}
	if err == nil {
		j.end += int64(len(l))
		return nil
	}
	switch undo := j.undo(len(content)); {
	case undo == nil:
		return fmt.Errorf("commit: %w", err)
	case undo.Error() != err.Error():
		err = errors.Join(err, undo)
	}
	return fmt.Errorf("%w: %w", ErrUncertain, err)
}

// undo takes back a record that was not synced.
func (j *log) undo(n int) error {
	info, err := j.file.Stat()
	if err != nil || info.Size <= j.end {
		return err
	}
	if j.end == 0 {
		return j.file.Truncate(0)
	}
	return j.file.WriteAt(make([]byte, min(int64(n), info.Size-j.end)), j.end)
}

// fill adds the zeros of a new journal.
func fill(records []byte) []byte {
	return append(records, make([]byte, max(0, Size-len(records)))...)
}

// add appends a mark. It is not synced: if it is lost, the files follow the record once more.
func (j *log) add(m mark) error {
	var o flat.Object
	m.members(flat.To(&o))
	l := sumLine(o.End())
	if err := j.file.WriteAt(l, j.end); err != nil {
		return err
	}
	j.end += int64(len(l))
	return nil
}
