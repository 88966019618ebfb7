package look

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"heartbeat/internal/host"
	"heartbeat/internal/watching/finder"
)

// findEvery is how often new inboxes are searched for.
const findEvery = 5 * time.Second

// parallel is how many inboxes are read at once: one that is slow does not hold up
// the others as long.
const parallel = 4

// Lookout looks at the inboxes below some folders. It is not safe for concurrent use.
type Lookout struct {
	finder *finder.Finder
	boxes  map[string]*watched
	found  time.Time
	paths  []string
	failed []string
	notes  []string
}

// New returns a lookout over the inboxes that a finder finds.
func New(f *finder.Finder) *Lookout { return &Lookout{finder: f, boxes: map[string]*watched{}} }

// Find searches for inboxes, if that is due. It reports whether others were found than
// before.
func (l *Lookout) Find(at time.Time) bool {
	if at.Sub(l.found) < findEvery {
		return false
	}
	l.found = at
	paths, failed, notes := l.finder.Find()
	changed := !slices.Equal(paths, l.paths) || !slices.Equal(failed, l.failed) || !slices.Equal(notes, l.notes)
	l.paths, l.failed, l.notes = paths, failed, notes
	l.keep(paths)
	return changed
}

// Look returns what is known now, and whether anything but the time changed since it
// was called last. If only is not nil, just the inboxes in those folders are looked at.
func (l *Lookout) Look(ctx context.Context, at time.Time, only map[string]bool) (p Picture, changed bool) {
	changed = l.Find(at)
	changed = l.each(ctx, at, only) || changed
	p = Picture{At: at, Failed: l.failed, Notes: l.notes}
	for _, path := range l.paths {
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
	var all sync.WaitGroup
	locks := sync.OnceValue(host.ReadLocks)
	places := make(chan struct{}, parallel)
	changed, panics := make([]bool, len(l.paths)), make([]any, len(l.paths))
	for i, path := range l.paths {
		w := l.boxes[path]
		if only != nil && !only[w.dir()] {
			continue
		}
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			defer func() { panics[i] = recover() }() // the caller knows what becomes of a terminal
			changed[i] = w.look(ctx, at, locks)
		})
	}
	all.Wait()
	for i, p := range panics {
		if p != nil {
			panic(fmt.Sprintf("look at %s: %v", l.paths[i], p))
		}
	}
	return slices.Contains(changed, true)
}

// Dirs are the folders of the inboxes.
func (l *Lookout) Dirs() (all []string) {
	for _, path := range l.paths {
		all = append(all, l.boxes[path].dir())
	}
	return all
}
