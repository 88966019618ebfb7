package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

// MaxNamed is how many entries of one fate are named.
const MaxNamed = 100

// Fates are what became of the session's entries: of all that are in its own inbox, or of
// those of a given inbox that waited when the session began or came since.
type Fates struct {
	Answered     Group `json:"answered"`
	Queued       Group `json:"queued"` // those that wait for their time too
	InFlight     Group `json:"inFlight"`
	DeadLettered Group `json:"deadLettered"`
	Dropped      Group `json:"dropped"`
}

// Group is the entries of one fate.
type Group struct {
	Count int `json:"count"`
	// Entries names the last ones that were settled, or the first ones that wait: at
	// most [MaxNamed].
	Entries []Entry `json:"entries,omitempty"`
	// Files are the names of the files that texts of answered entries were delivered in, since
	// they were too long: the last [MaxFiles].
	Files []string `json:"files,omitempty"`
}

// MaxFiles is how many files of texts are remembered.
const MaxFiles = 1000

// Entry names an entry.
type Entry struct {
	ID      string `json:"id,omitempty"` // its sender's name for it
	EntryID string `json:"entryId"`
	// File is the name of the file that its text was delivered in, "" for none.
	File string `json:"file,omitempty"`
	// Reason is why it is where it is, in a few words, "" if that goes without saying.
	Reason string `json:"reason,omitempty"`
}

// Fates says what became of the entries so far. It takes no lock.
func (q *Queue) Fates() (f Fates, err error) {
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
	if err := q.waits(v, &f); err != nil {
		return f, err
	}
	if f.Answered, err = named(now.Answered-q.mark.Answered, q.box.TailResults, answeredEntry); err != nil {
		return f, err
	}
	for i, e := range f.Answered.Entries {
		if q.unheard[e.EntryID] {
			f.Answered.Entries[i].Reason = "the client's own result line says so: no hook did"
		}
	}
	if f.DeadLettered, err = named(now.DeadLetters-q.mark.DeadLetters, q.box.TailDeadLetters, deadEntry); err != nil {
		return f, err
	}
	f.Dropped, err = named(now.Dropped-q.mark.Dropped, q.box.TailEvents, droppedEntry)
	return f, err
}

// waits are the entries that have no outcome yet.
func (q *Queue) waits(v *inbox.View, f *Fates) error {
	if d := v.InFlight(); d != nil {
		e := Entry{ID: d.ID(), EntryID: d.EntryID}
		if d.Failure != nil {
			e.Reason = words.Brief(d.Failure.String())
		}
		f.InFlight = Group{Count: 1, Entries: []Entry{e}}
	}
	err := v.Waits(nil, func(w inbox.Waiting) bool {
		f.Queued.add(Entry{ID: w.ID, EntryID: w.EntryID})
		return true
	})
	return errors.Join(err, q.box.EachScheduled(func(s inbox.Scheduled) bool {
		f.Queued.add(Entry{ID: s.ID, EntryID: s.EntryID, Reason: "it waits until " + words.Stamp(s.NotBefore)})
		return true
	}))
}

func (g *Group) add(e Entry) {
	if g.Count++; len(g.Entries) < MaxNamed {
		g.Entries = append(g.Entries, e)
	}
}

// named counts the last n outcomes, and names the last of them.
func named(n int64, open func(int) (*inbox.Tail, error), entry func(line []byte) (Entry, bool)) (g Group, err error) {
	if n <= 0 {
		return g, nil
	}
	g.Count = int(n)
	tail, err := open(-1)
	if err != nil {
		return g, err
	}
	read, files := 0, map[int]string{}
	err = tail.Lines(func(line []byte) {
		if e, is := entry(line); is {
			if read++; e.File != "" {
				files[read] = e.File
			}
			g.Entries = append(g.Entries, e)
			if len(g.Entries) > MaxNamed {
				g.Entries = g.Entries[1:]
			}
		}
	})
	for _, at := range slices.Sorted(maps.Keys(files)) {
		if at > read-g.Count {
			g.Files = append(g.Files, files[at])
		}
	}
	g.Files = g.Files[max(0, len(g.Files)-MaxFiles):]
	g.Entries = g.Entries[max(0, len(g.Entries)-g.Count):]
	if err = errors.Join(err, tail.Close()); err != nil {
		return g, fmt.Errorf("read what became of the entries: %w", err)
	}
	return g, nil
}

func answeredEntry(line []byte) (Entry, bool) {
	var r inbox.Result
	err := json.Unmarshal(line, &r)
	return Entry{ID: r.ID, EntryID: r.EntryID, File: r.TextFile}, err == nil && r.EntryID != ""
}

func deadEntry(line []byte) (Entry, bool) {
	l, mark, ok := inbox.ParseLetter(line)
	e := Entry{ID: l.ID, EntryID: l.EntryID, Reason: string(l.Reason)}
	if l.Reason == inbox.ReasonOverBudget && l.Failure != nil {
		e.Reason += ": " + words.Brief(l.Failure.Message)
	}
	return e, ok && !mark
}

func droppedEntry(line []byte) (Entry, bool) {
	var e inbox.Event
	err := json.Unmarshal(line, &e)
	return Entry{ID: e.ID, EntryID: e.EntryID}, err == nil && e.Event == inbox.EventDropped
}
