package queue

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/words"
)

// MaxNamed is how many entries of one fate are listed: the last settled ones, or the first waiting ones.
const MaxNamed = 100

// Fates are what became of the session's entries: all in its own inbox, or those in a given inbox
// that waited when the session began or were added since.
type Fates struct {
	folder.Entries
	Each   []folder.Entry
	opened []string
}

// Fates returns what became of the entries so far. A dropped entry counts as a dead letter. An entry with its text in
// a file counts as answered only if that is among the opened files. Fates takes no lock.
func (q *Queue) Fates(opened []string) (f Fates, err error) {
	if q.before == nil {
		return f, nil
	}
	if err := q.Lost(); err != nil {
		return f, fmt.Errorf("what became of them since the last client began is not known: %w", err)
	}
	v, err := q.box.View()
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	totals, err := v.Totals()
	if err != nil {
		return f, err
	}
	now := countsOf(totals)
	f.opened = opened
	if err = errors.Join(
		f.addOutcomes(&f.Answered, now.Answered-q.before.Answered, q.box.ResultsPath(), q.answeredEntry),
		f.addOutcomes(&f.DeadLettered, now.DeadLetters-q.before.DeadLetters, q.box.DeadLetterPath(), q.deadEntry()),
		f.addOutcomes(&f.DeadLettered, now.Dropped-q.before.Dropped, q.box.EventsPath(), droppedEntry)); err != nil {
		return f, fmt.Errorf("read what became of the entries: %w", err)
	}
	return f, f.addWaiting(q.box, v)
}

func (f *Fates) addWaiting(box *inbox.Inbox, v *inbox.View) error {
	add := func(id, entryID, why string) {
		if f.Queued++; f.Queued <= MaxNamed {
			f.Each = append(f.Each, folder.Entry{ID: cmp.Or(id, entryID), Fate: "queued", Why: why})
		}
	}
	err := v.Waits(nil, func(w inbox.Waiting) bool {
		add(w.ID, w.EntryID, "")
		return true
	})
	err = errors.Join(err, box.EachScheduled(func(s inbox.Scheduled) bool {
		add(s.ID, s.EntryID, "it waits until "+words.Stamp(s.NotBefore))
		return true
	}))
	if d := v.InFlight(); d != nil {
		e := folder.Entry{ID: cmp.Or(d.ID(), d.EntryID), Fate: "in flight"}
		if d.Failure != nil {
			e.Why = words.Brief(d.Failure.String())
		}
		f.InFlight, f.Each = 1, append(f.Each, e)
	}
	return err
}

// addOutcomes counts the last n outcomes of a file, and lists the last of them. Entries whose text was not read count as
// unread, and those without a fate not at all.
func (f *Fates) addOutcomes(count *int, n int64, path string, entry func(line []byte) (folder.Entry, bool)) error {
	if n <= 0 {
		return nil
	}
	tail, err := outcomes.OpenTail(path, -1)
	if err != nil {
		return err
	}
	read, last, unread, void := int64(0), []folder.Entry(nil), []int64(nil), []int64(nil)
	err = tail.Lines(func(line []byte) {
		e, is := entry(line)
		if !is {
			return
		}
		if read++; e.File != "" && !slices.Contains(f.opened, e.File) && !slices.Contains(f.opened, stream.AnyTextFile) {
			unread = append(unread, read)
			e.Fate, e.Why = "unread", "its text was handed over as a file, which no call of a tool opened"
		}
		if e.Fate == "" {
			void = append(void, read)
		} else if last = append(last, e); len(last) > MaxNamed {
			last = last[1:]
		}
	})
	before := func(at int64) bool { return at <= read-n }
	unread, void = slices.DeleteFunc(unread, before), slices.DeleteFunc(void, before)
	f.Unread += len(unread)
	n -= int64(len(void))
	*count += int(n) - len(unread)
	f.Each = append(f.Each, last[max(0, len(last)-int(n)):]...)
	return errors.Join(err, tail.Close())
}

func (q *Queue) answeredEntry(line []byte) (e folder.Entry, is bool) {
	var r inbox.Result
	err := json.Unmarshal(line, &r)
	e = folder.Entry{ID: cmp.Or(r.ID, r.EntryID), Fate: "answered", File: r.TextFile}
	if q.unreported[r.EntryID] {
		e.Why = "the client's own result line says so: no hook did"
	}
	return e, err == nil && r.EntryID != ""
}

// deadEntry reads dead letters. A requeued or accepted one has no fate here: its entry waits again, or is answered.
func (q *Queue) deadEntry() func(line []byte) (folder.Entry, bool) {
	closed := sync.OnceValue(q.closedLetters)
	return func(line []byte) (e folder.Entry, is bool) {
		l, mark, ok := inbox.ParseLetter(line)
		if mark || !ok || closed()[l.Letter] {
			return e, ok && !mark
		}
		e = folder.Entry{ID: cmp.Or(l.ID, l.EntryID), Fate: "dead-lettered", Why: string(l.Reason)}
		if l.Reason == inbox.ReasonOverBudget && l.Failure != nil {
			e.Why += ": " + words.Brief(l.Failure.Message)
		}
		return e, true
	}
}

func (q *Queue) closedLetters() map[string]bool {
	all := map[string]bool{}
	_, _ = outcomes.EachLetter(q.box, func(l inbox.Letter) bool { // the caller meets its error too
		all[l.Letter] = !l.Open()
		return true
	})
	return all
}

func droppedEntry(line []byte) (folder.Entry, bool) {
	var e inbox.Event
	err := json.Unmarshal(line, &e)
	return folder.Entry{ID: cmp.Or(e.ID, e.EntryID), Fate: "dead-lettered"}, err == nil && e.Event == inbox.EventDropped
}
