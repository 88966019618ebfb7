package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// Scheduled is an entry that waits in .scheduled.jsonl for its time. After that,
// the next transaction moves it to the end of the inbox.
type Scheduled struct {
	ID        string    `json:"id"`
	EntryID   string    `json:"entry_id"`
	NotBefore time.Time `json:"not_before"`
	Text      string    `json:"text"`

	line   []byte   // what goes to the queue
	lineID string   // names the line that is in .scheduled.jsonl
	putOff *earlier // of an entry that was delivered before, else nil
}

// SentAt is when `send` was given the entry; zero if the line does not say.
func (s Scheduled) SentAt() time.Time { return decodeEntry(s.line).timeMember(sentAtMember) }

// readScheduled reads the entries in the order of the file. Other lines stay
// where they are, and are counted.
func readScheduled(f io.ReaderAt, size int64) (all []Scheduled, foreign int, err error) {
	seen := map[string]bool{}
	err = lines.EachOwn(io.NewSectionReader(f, 0, size), 0, func(_, _ int64, l []byte, whole bool) bool {
		switch s, ok := parseScheduled(l); {
		case ok && !seen[s.EntryID]: // an editor may have left out the last newline
			seen[s.EntryID] = true
			all = append(all, s)
		case !ok && whole && len(bytes.TrimSpace(l)) > 0:
			foreign++
		}
		return true
	})
	return all, foreign, err
}

func parseScheduled(l []byte) (Scheduled, bool) {
	m, err := flat.Parse(l)
	if err != nil {
		return Scheduled{}, false
	}
	if s, ok := parsePutOff(l, m); ok {
		return s, true
	}
	id, text, _ := decodeLine(l)
	if id == "" {
		return Scheduled{}, false
	}
	at := m.Time(notBeforeMember)
	if m.Err() != nil || at.IsZero() {
		return Scheduled{}, false
	}
	return Scheduled{ID: id, EntryID: entryID(l), NotBefore: at, Text: text, line: bytes.Clone(l), lineID: lines.ID(l)}, true
}

// Scheduled returns the entries that wait for their time, in the order of the
// file, without taking the lock.
func (b *Inbox) Scheduled() ([]Scheduled, error) {
	f, err := disk.OpenRead(b.fileOf(journal.Scheduled))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read scheduled entries: %w", err)
	}
	all, _, err := readScheduled(f, f.Info().Size)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read scheduled entries: %w", err)
	}
	return all, nil
}

// scheduleSeen is what the state remembers of .scheduled.jsonl. The file is read
// only if it changed or an entry in it is due.
type scheduleSeen struct{ size, mtime, due int64 }

func (s scheduleSeen) encode() []byte {
	var o flat.Object
	o.Int("size", s.size)
	o.Int("mtime_ns", s.mtime)
	o.Int("due_ns", s.due)
	return o.End()
}

// promote appends the entries that have come due to the queue file, and commits
// that. If somebody is still writing a last line there, it leaves that for the
// next transaction.
func (t *Tx) promote() error {
	// There is nearly always none, and learning that from an error would cost a
	// tick 1 %.
	there, err := disk.Exists(t.box.fileOf(journal.Scheduled))
	if err != nil {
		return err
	}
	var f *disk.File
	if there {
		if f, err = t.store.File(journal.Scheduled).Existing(); err != nil {
			return err
		}
	}
	if f == nil || f.Info().Size == 0 {
		t.st.Scheduled = nil
		return nil
	}
	now := t.box.opts.Now()
	if m, err := flat.Parse(t.st.Scheduled); err == nil && m.Int("size") == f.Info().Size && m.Int("mtime_ns") == f.Info().Mtime {
		if t.due = m.Int("due_ns"); t.due == 0 || time.Unix(0, t.due).After(now) {
			return nil
		}
	}
	all, foreign, err := readScheduled(f, f.Info().Size)
	if err != nil {
		return fmt.Errorf("read scheduled entries: %w", err)
	}
	if foreign > 0 {
		t.warn("%s has %d lines that are not scheduled entries: they stay there", f.Path(), foreign)
	}
	seen := scheduleSeen{size: f.Info().Size, mtime: f.Info().Mtime}
	var due []Scheduled
	for _, s := range all {
		if !s.NotBefore.After(now) {
			due = append(due, s)
		} else if at := nanoseconds(s.NotBefore); seen.due == 0 || at < seen.due {
			seen.due = at
		}
	}
	t.due = seen.due
	if len(due) == 0 {
		t.st.Scheduled = seen.encode() // remembered with the next commit
		return nil
	}
	t.st.Scheduled = nil // to be read again, also if this fails
	return t.promoteDue(due)
}

// nanoseconds counts from 1970. An int64 reaches to 2262.
func nanoseconds(at time.Time) int64 {
	if most := time.Unix(0, math.MaxInt64); at.After(most) {
		return math.MaxInt64
	}
	return at.UnixNano()
}

func (t *Tx) promoteDue(due []Scheduled) error {
	writing, err := t.beingWritten()
	if err != nil {
		return err
	}
	if writing {
		return nil
	}
	t.noticeGone()
	r := t.rereading()
	for _, s := range due { // as data: JSON would lose spaces around the line
		if r != nil && r.Since > 0 && t.here { // the file may be an older copy, too
			why, err := t.settledAs(r, s.line)
			if err == nil && why != "" {
				err = t.notePassed(decodeEntry(s.line), why)
				t.pending[len(t.pending)-1].Unschedule = s.lineID
			}
			if err != nil {
				return err
			}
			if why != "" {
				continue
			}
		}
		l := journal.Line{Kind: journal.Queue, Data: s.line, Promoted: true}
		if s.putOff != nil {
			l.Promoted, l.Unschedule = false, s.lineID
			if bytes.HasSuffix(l.Data, []byte("\r")) {
				l.Data = append(bytes.Clone(l.Data), '\r') // before the newline it is not part of the line
			}
			if err := t.noteEarlier(s.putOff); err != nil {
				return err
			}
		}
		t.addLine(l)
	}
	if err := t.Commit(); err != nil {
		return fmt.Errorf("append scheduled entries to inbox %s: %w", t.box.path, err)
	}
	return nil
}

// promoteAgain is when a hook that waits tries again what failed.
const promoteAgain = 5 * time.Second

// NextDue is when the next scheduled entry comes due, or when one is tried again that
// could not be moved; zero if none is known.
func (t *Tx) NextDue() time.Time {
	if t.due == 0 {
		return time.Time{}
	}
	return time.Unix(0, t.due)
}
