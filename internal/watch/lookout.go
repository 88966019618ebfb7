package watch

import (
	"context"
	"slices"
	"sync"
	"time"

	"heartbeat/internal/machine"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
)

const (
	// findEvery is how often new inboxes are searched for. A search is followed by a rest at least findRest times
	// as long.
	findEvery = 5 * time.Second
	findRest  = 50
)

// Picture is what was known at a moment.
type Picture struct {
	At      time.Time
	Inboxes []Inbox
	// Failed are sentences about named folders that cannot be searched, and Notes about what was left out.
	Failed, Notes []string
}

// Inbox is what is known of one inbox. Its texts are not cleaned.
type Inbox struct {
	see.Facts
	State see.State
	Why   string
	// Troubles are what is wrong.
	Troubles []see.Trouble
	// Oldest is since when the next entry has waited, as [inbox.Head] says, nil if none waits.
	Oldest *time.Time
	// Today is what was spent since midnight, as far as the client reported it.
	Today price.Amount
	// Seen changes whenever anything of the inbox does.
	Seen  int64
	Notes []string
}

func (i *Inbox) judge() {
	i.State, i.Why = i.Explain()
	i.Troubles = i.Facts.Troubles()
}

// Path names the inbox.
func (i Inbox) Path() string { return i.Facts.Inbox }

// Asks reports whether a person is asked for something.
func (i Inbox) Asks() bool { return len(i.Held) > 0 || i.Asking() != nil }

// Lookout looks at the inboxes below some folders. It is not safe for concurrent use.
type Lookout struct {
	// Paths are the inboxes that were found last. Failed and Notes are as in a [Picture].
	Paths, Failed, Notes []string

	roots []string
	boxes map[string]*watched
	due   time.Time // when to search next
}

// New returns a lookout over the inboxes in these folders and below. A root may also be an inbox: see [Find].
func New(roots ...string) *Lookout { return &Lookout{roots: roots, boxes: map[string]*watched{}} }

// Find searches for inboxes if that is due, and reports whether the outcome changed.
func (l *Lookout) Find(at time.Time) bool {
	if at.Before(l.due) {
		return false
	}
	began := time.Now()
	paths, failed, notes := FindInboxes(l.roots)
	l.due = at.Add(max(findEvery, findRest*time.Since(began)))
	changed := !slices.Equal(paths, l.Paths) || !slices.Equal(failed, l.Failed) || !slices.Equal(notes, l.Notes)
	l.Paths, l.Failed, l.Notes = paths, failed, notes
	l.keep(paths)
	return changed
}

// Look returns what is known now, and whether anything but the time changed since the last call. If only is not
// nil, just the inboxes in those folders are looked at.
func (l *Lookout) Look(ctx context.Context, at time.Time, only map[string]bool) (p Picture, changed bool) {
	changed = l.Find(at)
	changed = l.each(ctx, at, only) || changed
	p = Picture{At: at, Failed: l.Failed, Notes: l.Notes}
	for _, path := range l.Paths {
		p.Inboxes = append(p.Inboxes, l.boxes[path].now)
	}
	return p, changed
}

// keep forgets the inboxes that are gone.
func (l *Lookout) keep(paths []string) {
	before := l.boxes
	l.boxes = make(map[string]*watched, len(paths))
	for _, path := range paths {
		if l.boxes[path] = before[path]; l.boxes[path] == nil {
			l.boxes[path] = &watched{path: path}
		}
	}
}

func (l *Lookout) each(ctx context.Context, at time.Time, only map[string]bool) bool {
	locks := sync.OnceValue(machine.ReadLocks)
	changed := make([]bool, len(l.Paths))
	see.Each(len(l.Paths), func(i int) {
		if w := l.boxes[l.Paths[i]]; only == nil || only[w.dir()] {
			changed[i] = w.look(ctx, at, locks)
		}
	})
	return slices.Contains(changed, true)
}

// Locked reports whether the lock of any inbox was held at the last look. Another look, [LockPatience] later, shows
// whether it is kept.
func (l *Lookout) Locked() bool {
	for _, path := range l.Paths {
		if l.boxes[path].holder != 0 {
			return true
		}
	}
	return false
}

// Dirs are the folders of the inboxes.
func (l *Lookout) Dirs() (all []string) {
	for _, path := range l.Paths {
		all = append(all, l.boxes[path].dir())
	}
	return all
}
