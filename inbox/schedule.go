package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// Scheduled is an entry that waits in .scheduled.jsonl for its time. Once it is due, the next transaction
// moves it to the end of the inbox.
type Scheduled struct {
	ID        string    `json:"id"`
	EntryID   string    `json:"entry_id"`
	NotBefore time.Time `json:"not_before"`
	Text      string    `json:"text"`

	line   []byte   // the line for the queue
	lineID string   // the id of the line in .scheduled.jsonl
	putOff *earlier // nil unless the entry was delivered before
}

// SentAt returns when the entry was given to `send`; zero if the line has no such time.
func (s Scheduled) SentAt() time.Time { return decodeEntry(s.line).timeMember(sentAtMember) }

// timeIn returns when a line's entry is due, zero if only decoding the line can tell.
func timeIn(l []byte) (at time.Time) {
	hasID, hasPrompt := false, false
	valid := flat.Each(l, func(name, value []byte) {
		switch string(name) {
		case `"not_before"`:
			at, _ = time.Parse(time.RFC3339, flat.Value(value).Text())
		case `"id"`:
			hasID = len(value) > len(`""`) && value[0] == '"'
		case `"prompt"`:
			hasPrompt = value[0] == '"'
		}
	})
	if !valid || !hasID || !hasPrompt {
		return time.Time{}
	}
	return at
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
	at := m.Time(notBeforeMember)
	if id == "" || m.Err() != nil || at.IsZero() {
		return Scheduled{}, false
	}
	return Scheduled{ID: id, EntryID: entryID(l), NotBefore: at, Text: text, line: bytes.Clone(l), lineID: lines.ID(l)}, true
}

// EachScheduled visits the scheduled entries in file order until visit returns false. It takes no lock.
func (b *Inbox) EachScheduled(visit func(Scheduled) bool) error {
	_, err := b.readSchedule(func(time.Time) bool { return true }, func(_ time.Time, s *Scheduled) bool { return visit(*s) })
	return err
}

// readSchedule visits the lines of the file. visit gets the entry if wanted accepts its time, and otherwise
// only the time. Invalid lines stay in the file and are counted.
func (b *Inbox) readSchedule(wanted func(time.Time) bool, visit func(time.Time, *Scheduled) bool) (foreign int, err error) {
	err = journal.Reading(b.ScheduledPath(), func(f *disk.File) error {
		return lines.EachOwn(io.NewSectionReader(f, 0, f.Info().Size), 0, func(_, _ int64, l []byte, whole bool) bool {
			if at := timeIn(l); !at.IsZero() && !wanted(at) { // decoding every line would take long
				return visit(at, nil)
			}
			s, ok := parseScheduled(l)
			switch {
			case ok: // also without its newline, which an editor may omit
				return visit(s.NotBefore, &s)
			case whole && len(bytes.TrimSpace(l)) > 0:
				foreign++
			}
			return true
		})
	})
	if err != nil {
		err = fmt.Errorf("read scheduled entries: %w", err)
	}
	return foreign, err
}

// Scheduled returns the entries that [Inbox.EachScheduled] visits, each of them once, all in memory.
func (b *Inbox) Scheduled() (all []Scheduled, err error) {
	seen := map[string]bool{}
	err = b.EachScheduled(func(s Scheduled) bool {
		if !seen[s.EntryID] {
			all = append(all, s)
		}
		seen[s.EntryID] = true
		return true
	})
	return all, err
}

// Schedule is the number of scheduled entries, and when the first of them is due.
type Schedule struct {
	Count int
	Next  time.Time // zero if there is none
}

// Schedule counts the scheduled entries. It takes no lock.
func (b *Inbox) Schedule() (s Schedule, err error) {
	_, err = b.readSchedule(func(time.Time) bool { return false }, func(at time.Time, _ *Scheduled) bool {
		if s.Count++; s.Next.IsZero() || at.Before(s.Next) {
			s.Next = at.UTC()
		}
		return true
	})
	return s, err
}

// One transaction moves at most this much. The next one goes on.
const (
	promotedLines = 4096
	promotedBytes = 1 << 20
)

// promote appends the entries that are due to the queue file, and commits that. If somebody is still writing
// a last line there, the next transaction does it.
func (t *Tx) promote() error {
	// The file rarely exists, and learning that from an error would cost a tick 1 %.
	there, err := disk.Exists(t.box.fileOf(journal.Scheduled))
	if err != nil || !there {
		return err
	}
	now, due, more := t.box.opts.Now(), []Scheduled(nil), false
	known, space := map[string]bool{}, 0
	foreign, err := t.box.readSchedule(func(at time.Time) bool { return !at.After(now) }, func(at time.Time, s *Scheduled) bool {
		switch {
		case at.After(now):
			if t.due.IsZero() || at.Before(t.due) {
				t.due = at.UTC()
			}
		case !known[s.EntryID]:
			if more = len(due) > 0 && (len(due) == promotedLines || space+len(s.line) > promotedBytes); more {
				return false
			}
			known[s.EntryID] = true
			due, space = append(due, *s), space+len(s.line)
		}
		return true
	})
	if err != nil {
		return err
	}
	if was := t.box.foreign.Swap(int64(foreign)); foreign > 0 && was != int64(foreign) {
		t.warn("%s has %d lines that are not scheduled entries: they stay there", t.box.ScheduledPath(), foreign)
	}
	if more {
		t.due = now
	}
	if len(due) == 0 {
		return nil
	}
	return t.promoteDue(due)
}

func (t *Tx) promoteDue(due []Scheduled) error {
	writing, err := t.beingWritten()
	if err != nil || writing {
		return err
	}
	if err := t.mayAppend(); err != nil {
		return fmt.Errorf("append scheduled entries to inbox %s: %w", t.box.path, err)
	}
	t.noticeGone()
	r := t.rereading()
	for _, s := range due { // as Data: JSON would lose white space around the line
		if r != nil && r.Since > 0 && t.here { // the file may be an older copy, too
			why, err := t.settledAs(r, s.line)
			if err != nil {
				return err
			}
			if why != "" {
				t.notePassed(decodeEntry(s.line), why)
				t.pending[len(t.pending)-1].Unschedule = s.lineID
				continue
			}
		}
		l := journal.Line{Kind: journal.Queue, Data: s.line, Promoted: true}
		if s.putOff != nil {
			l.Promoted, l.Unschedule = false, s.lineID
			if bytes.HasSuffix(l.Data, []byte("\r")) {
				l.Data = append(bytes.Clone(l.Data), '\r') // before the newline it would not be part of the line
			}
			t.noteEarlier(s.putOff)
		}
		t.addLine(l)
	}
	if err := t.Commit(); err != nil {
		return fmt.Errorf("append scheduled entries to inbox %s: %w", t.box.path, err)
	}
	return nil
}

// promoteRetry is how long a waiting hook waits before it retries a failed move.
const promoteRetry = 5 * time.Second

// NextDue returns when the next scheduled entry is due, or when a failed move is retried; zero if no entry is known.
func (t *Tx) NextDue() time.Time { return t.due }

// Promote moves the scheduled entries that are due to the end of the inbox. [Inbox.Begin] does so too;
// Promote is for callers that only read.
func (b *Inbox) Promote(ctx context.Context) error {
	s, err := b.Schedule()
	if err != nil || s.Next.IsZero() || s.Next.After(b.opts.Now()) {
		return err
	}
	t, err := b.Begin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(t.notMoved, t.Close())
}
