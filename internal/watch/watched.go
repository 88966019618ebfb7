package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
	recovery "heartbeat/recover"
)

const (
	// livesEvery is how often an inbox that cannot be read is tried again, and how long a lock may be held before it
	// is shown.
	livesEvery = 2 * time.Second
	// movesEvery is how often it is checked whether anything moves.
	movesEvery = 10 * time.Second
	// anewEvery is how often an inbox is read again without a visible change, for what no file shows.
	anewEvery = 10 * time.Minute
)

// watched is an inbox with what was last known of it.
type watched struct {
	path string
	box  *inbox.Inbox
	now  Inbox

	files   []mark // as they were when they were read
	read    time.Time
	moved   time.Time   // when Still was computed
	head    *inbox.Head // the entry that comes next
	holder  int         // who held the lock at the last look
	held    time.Time   // since when, as far as this saw
	journal mark        // as it was then
}

func (w *watched) dir() string { return filepath.Dir(w.path) }

// open shows an inbox that cannot be opened as broken.
func (w *watched) open(at time.Time) (changed bool) {
	if w.box != nil {
		return false
	}
	var err error
	if w.box, err = inbox.Open(w.path, inbox.Options{}); err == nil || w.now.Unreadable != nil && w.now.Unreadable.Error() == err.Error() {
		return false
	}
	w.now = Inbox{Facts: see.Facts{Now: at, Inbox: w.path, Dir: w.dir(), Reach: see.Reach{Space: -1, Unreadable: err}}, Seen: w.now.Seen + 1}
	w.now.judge()
	return true
}

// look looks at an inbox once. If its lock is held, it waits to see whether the lock is kept.
func look(ctx context.Context, path string) Inbox {
	w := &watched{path: path}
	if w.open(time.Now()); w.box != nil {
		w.survey(see.Look(ctx, w.box))
		w.now.judge()
	}
	return w.now
}

// look updates what is known, and reports whether anything changed. locks returns the locks held now.
func (w *watched) look(ctx context.Context, at time.Time, locks func() machine.Locks) bool {
	if broken := w.open(at); w.box == nil {
		return broken
	}
	files := marksOf(w.box)
	changed := !slices.Equal(files, w.files) || w.stale(at) || w.died()
	if !changed {
		changed = w.surroundings(at)
	} else {
		w.files, w.read, w.moved = files, at, at
		f := see.LookAgain(ctx, w.box, &w.now.Facts)
		f.LockedBy, f.LockedName, f.LockedFor = w.now.LockedBy, w.now.LockedName, w.now.LockedFor
		w.survey(f)
	}
	changed = w.lock(at, locks()) || changed
	w.now.Facts.Now = at
	if changed {
		w.now.judge()
		w.now.Seen++
	}
	return changed
}

// stale reports whether what was read may be wrong although no file changed: it is old, or a pause, a back-off or a
// schedule is over.
func (w *watched) stale(at time.Time) bool {
	age, today := at.Sub(w.read), at.Local().Format(time.DateOnly) == w.read.Local().Format(time.DateOnly)
	over := func(t time.Time) bool { return !t.IsZero() && t.After(w.read) && !t.After(at) }
	p, b := w.now.Paused, w.now.Backoff
	return age >= anewEvery || !today || w.now.Unreadable != nil && age >= livesEvery ||
		p != nil && p.Until != nil && over(*p.Until) || b != nil && over(b.Until) || over(w.now.Scheduled.Next)
}

// survey takes what a look found, and adds what that leaves out.
func (w *watched) survey(f see.Facts) {
	w.now.Facts = f
	if _, err := disk.StatDir(w.dir()); errors.Is(err, fs.ErrNotExist) {
		w.now.Unreadable = fmt.Errorf("its folder %s is gone", w.dir())
	}
	was := w.head
	if w.head, w.now.Oldest = f.Head, nil; f.Head != nil {
		if was != nil && was.At == f.Head.At && was.Since.Before(f.Head.Since) {
			f.Head.Since = was.Since // an earlier look saw it wait
		}
		w.now.Oldest = &f.Head.Since
	}
	w.now.Notes = slices.Concat(w.now.Warnings, w.now.Letters.Warnings)
	w.now.Today = price.Amount{}
	if spent, err := book.Spending(w.box, nil); err == nil && w.now.Unreadable == nil { // otherwise the state is what is shown
		w.now.Today = spent.Today()
	}
}

// died reports whether a process has changed since the state was read.
func (w *watched) died() bool {
	gone := func(s see.Session) bool { return s.Life == machine.Alive && s.Session.Life() != s.Life }
	ended := func(p inbox.Process) bool { return p.PID != 0 && p.Life() != machine.Alive } // else a session has it
	b, l, d := w.now.Waiter, w.now.Launcher, w.now.InFlight
	return slices.ContainsFunc(w.now.Sessions, gone) ||
		b != nil && b.Life == machine.Alive && see.WaiterNow(b.Waiter).String() != b.String() ||
		l != nil && l.PID > 0 && machine.Ended(l.PID) ||
		d != nil && w.now.Client == machine.Alive && ended(recovery.EvidenceOf(d).Process())
}

// surroundings checks what no state file shows: what runs ask, the free space, and whether anything moves. Only a
// transcript, which may be long, tells whether a tool runs, so movement is not checked at each look.
func (w *watched) surroundings(at time.Time) bool {
	if w.now.Unreadable != nil {
		return false
	}
	held, state := w.now.Held, w.now.State
	w.now.Held = see.Questions(w.box)
	w.now.Space, w.now.Needed = w.box.Room()
	w.now.Facts.Now = at
	if at.Sub(w.moved) >= movesEvery || at.Before(w.moved) {
		w.moved, w.now.Still = at, see.StandsStill(w.now.Facts)
	}
	now, _ := w.now.Explain()
	return now != state || !slices.Equal(held, w.now.Held)
}

// lock notes who has kept the lock without a commit in between, and reports whether that changed.
func (w *watched) lock(at time.Time, locks machine.Locks) bool {
	holder := locks.Holder(filepath.Join(w.box.Dir(), ".inbox-lock"))
	if holder != w.holder { // the kernel may leave a lock out of its list for a moment
		holder = w.box.Lock()
	}
	// Anybody may change other files of the folder meanwhile.
	if now := markOf(filepath.Join(w.dir(), ".inbox-journal")); holder != w.holder || now != w.journal {
		w.holder, w.held, w.journal = holder, at, now
	}
	if at.Sub(w.held) < livesEvery {
		holder = 0
	}
	if holder == w.now.LockedBy {
		return false
	}
	w.now.LockedBy, w.now.LockedName, w.now.LockedFor = holder, machine.Name(holder), livesEvery
	return true
}

// mark identifies the state of a file without reading it.
type mark struct {
	dev, ino           uint64
	size, mtime, ctime int64
	mode               uint32
}

// stateFiles are the files beside an inbox from which the overview is made.
var stateFiles = []string{
	".inbox-journal", ".inbox-offset", ".in-flight", ".responded", ".scheduled.jsonl", ".launch-lock", ".costs.jsonl",
}

// marksOf returns the marks of everything that the overview is made from. The folder's mark changes when a file in it
// is replaced, such as what is not charged yet.
func marksOf(box *inbox.Inbox) (all []mark) {
	paths := []string{box.Path(), box.Dir(), box.DeadLetterPath(), box.ResultsPath()}
	for _, name := range stateFiles {
		paths = append(paths, filepath.Join(box.Dir(), name))
	}
	for _, path := range paths {
		all = append(all, markOf(path))
	}
	return all
}

func markOf(path string) mark {
	i, err := disk.StatName(path)
	if err != nil {
		return mark{}
	}
	return mark{i.Dev, i.Ino, i.Size, i.Mtime, i.Ctime, i.Mode}
}
