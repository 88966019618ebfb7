package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime/debug"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
)

const (
	// journalSize is what a new journal is filled up to with zeros: a record
	// that overwrites them is synced in one step, where a file that grows has
	// its new length to be synced besides.
	journalSize = 256 << 10
	// trimSize is how far the records may go before those that nothing needs
	// any more are taken away.
	trimSize = journalSize - 16<<10

	journalBlock = 4 << 10
)

// sumLen is how many hex digits of a record's SHA-256 stand before it.
const sumLen = 16

// journal is .inbox-journal: a line for each commit, `SUM JSON`. The
// last whole line with a right sum is the state; whatever stands after it was
// never synced, so nobody ever acted on it. A line that only says `followed`
// comes, unsynced, when the documented files show what the record before says.
type journal struct {
	file *disk.File // nil while there is none
	end  int64      // of the last valid line
}

// followMark says that the record with that sequence number was followed, in
// that boot: after a power loss the files may be older than the mark.
type followMark struct {
	Followed int64
	Boot     string
	// Handed says besides that the entry in flight was handed over: see
	// [Tx.HandedOver].
	Handed bool
}

func openJournal(path string, open func(string) (*disk.File, error)) (*journal, error) {
	f, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &journal{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return &journal{file: f}, nil
}

func (j *journal) close() error { return j.file.Close() }

// last reads the newest record, from the end of the file and no further back
// than it must. A nil state means that nothing was ever committed.
func (j *journal) last() (st *state, mark *followMark, err error) {
	if j.file == nil || j.file.Info().Size == 0 {
		return nil, nil, nil
	}
	size, err := j.written()
	if err != nil {
		return nil, nil, fmt.Errorf("read journal: %w", err)
	}
	for span := int64(2 * journalBlock); ; span *= 8 {
		if span > largeLine {
			// The record has a long line in it: what is read is let go of before
			// more is, and before that line itself is read.
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
		st, mark, end := newest(tail, from == 0)
		if st != nil {
			j.end = from + end
			return st, mark, nil
		}
		if from > 0 {
			continue
		}
		if bytes.Count(tail, []byte("\n")) > 1 {
			return nil, nil, fmt.Errorf("read journal %s: no record in it is valid: move it away, and the state goes on from %s and %s (an entry that was given back while its file was replaced is then only in %s, as \"detached\"): %w",
				j.file.Path(), cursorName, inFlightName, eventsName, ErrCorrupt)
		}
		return nil, nil, nil // the first commit never got through
	}
}

// written finds an offset behind the last record and not far behind it. No
// record holds a zero byte, so the blocks that begin with one are the unused.
func (j *journal) written() (int64, error) {
	size := j.file.Info().Size
	used, unused := int64(0), (size+journalBlock-1)/journalBlock
	var first [1]byte
	for used+1 < unused {
		middle := (used + unused) / 2
		if _, err := j.file.ReadAt(first[:], middle*journalBlock); err != nil {
			return 0, err
		}
		if first[0] == 0 {
			unused = middle
		} else {
			used = middle
		}
	}
	return min(size, unused*journalBlock), nil
}

// newest finds the last record in the tail of a journal, and the follow mark
// behind it. end is where, within tail, the last valid line ends.
func newest(tail []byte, whole bool) (st *state, mark *followMark, end int64) {
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
		case !ok: // never synced, or a mark, of which a power loss may take any
		case isFollowMark(body): // each boot adds one, and so does handing over
			m := decodeFollowMark(body)
			if m == nil {
				return nil, nil, 0
			}
			if mark == nil {
				mark = m
			}
			mark.Handed = mark.Handed || m.Handed && m.Followed == mark.Followed
		default:
			st = new(state)
			m, err := flat.Parse(withoutAppends(body))
			if err != nil || st.decode(m) != nil || mark != nil && mark.Followed > st.Seq {
				return nil, nil, 0 // the record that the mark is of is gone
			}
			if mark != nil && mark.Followed < st.Seq { // left of what a power loss cut off
				mark, end = nil, int64(nl)+1
			}
			return st, mark, end
		}
		rest = rest[:start]
	}
}

// withoutAppends is a long record without its last member, which is most of it. A
// quote within a string has a backslash before it, so that this finds no text.
func withoutAppends(body []byte) []byte {
	if len(body) < largeLine {
		return body
	}
	i := bytes.Index(body, []byte(`,"appends":[`))
	if i < 0 || !bytes.Contains(body[:i], []byte(`,"queue_generation":`)) {
		return body // written in another order
	}
	return append(bytes.Clone(body[:i]), '}')
}

func decodeWhole(body []byte) (*state, error) {
	m, err := flat.Parse(body)
	if err != nil {
		return nil, err
	}
	st := new(state)
	if err := st.decode(m); err != nil {
		return nil, err
	}
	st.Appends, err = decodeAppends(m)
	return st, err
}

func isFollowMark(body []byte) bool { return bytes.HasPrefix(body, []byte(`{"followed":`)) }

func (f followMark) encode() []byte {
	var o flat.Object
	o.Int("followed", f.Followed)
	o.String("boot", f.Boot)
	if f.Handed {
		o.Bool("handed", true)
	}
	return o.End()
}

func decodeFollowMark(body []byte) *followMark {
	m, err := flat.Parse(body)
	if err != nil {
		return nil
	}
	return &followMark{Followed: m.Int("followed"), Boot: m.String("boot"), Handed: m.Bool("handed")}
}

// each calls f for every record up to the end of the last valid one. followed
// says that a mark of that boot vouches for it.
func (j *journal) each(boot string, f func(s *state, followed bool) error) error {
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
		case !isFollowMark(body):
			records = append(records, body)
		default:
			if mark := decodeFollowMark(body); mark != nil && mark.Boot == boot {
				followed = len(records)
			}
		}
	}
	for i, body := range records {
		st, err := decodeWhole(body)
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
	return body, string(l[:sumLen]) == entryID(body)[:sumLen]
}

func sumLine(body []byte) []byte {
	l := make([]byte, 0, sumLen+len(body)+2)
	l = append(append(l, entryID(body)[:sumLen]...), ' ')
	return append(append(l, body...), '\n')
}

// commit appends a record and returns once it would survive a power loss. After
// an error the journal is as it was, or the error matches ErrUncertain.
func (j *journal) commit(path string, body []byte) error {
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
	if err != nil {
		if undo := j.undo(len(content)); undo != nil {
			err = fmt.Errorf("%w: %w", ErrUncertain, errors.Join(err, undo))
		}
		return fmt.Errorf("commit: %w", err)
	}
	j.end += int64(len(l))
	return nil
}

// settle makes durable what the journal holds, whoever wrote it.
func (j *journal) settle() error {
	err := j.file.Sync()
	if err == nil {
		err = disk.SyncDir(filepath.Dir(j.file.Path()))
	}
	if err != nil {
		return fmt.Errorf("settle the last commit: %w", err)
	}
	return nil
}

// undo takes back a record that was not synced.
func (j *journal) undo(n int) error {
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
	if len(records) >= journalSize {
		return records
	}
	return append(records, make([]byte, journalSize-len(records))...)
}

// followed notes that the documented files are up to date. It is not synced:
// where the note is lost, following is done once more.
func (j *journal) followed(mark followMark) error {
	l := sumLine(mark.encode())
	if err := j.file.WriteAt(l, j.end); err != nil {
		return err
	}
	j.end += int64(len(l))
	return nil
}
