package watch

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/fsnotify/fsnotify"
)

const (
	// pollEvery is how often all inboxes are looked at for what no event reports, such as whether processes live.
	// Where the system gives no events, blindEvery applies.
	pollEvery  = 5 * time.Second
	blindEvery = time.Second
	// tickEvery is how often the clock and the ages are drawn.
	tickEvery = time.Second
	// soon is how long an event waits for others of the same commit, which changes several files.
	soon = 20 * time.Millisecond
	// share bounds the time spent looking while inboxes change constantly. Each look is followed by a rest that is
	// share times as long.
	share = 2
)

// gather looks at the inboxes whenever something changes, and sends what it sees. A slow terminal delays only this.
func gather(ctx context.Context, to *tea.Program, l *Lookout) {
	w := newWatch()
	defer w.close()
	poll, tick := time.NewTicker(w.pollEvery()), time.NewTicker(tickEvery)
	defer poll.Stop()
	defer tick.Stop()
	later := time.NewTimer(0)
	defer later.Stop()
	var changed map[string]bool // nil: all
	pending := map[string]bool{}
	rest := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-tick.C:
			to.Send(told(func(b *Board) Effect { b.Tick(at); return nil }))
			continue
		case <-poll.C:
			changed = nil
			later.Reset(0)
			continue
		case e := <-w.all.Events:
			if len(pending) == 0 {
				later.Reset(max(soon, rest))
			}
			pending[filepath.Dir(e.Name)] = true
			continue
		case <-w.all.Errors:
			continue // too many events: polling finds what changed
		case <-later.C:
			if len(pending) > 0 {
				changed, pending = pending, map[string]bool{}
			}
		}
		began := time.Now()
		found := l.Find(began)
		if found { // before reading, so that no change falls in between
			w.follow(l.Dirs())
			poll.Reset(w.pollEvery())
			changed = nil
		}
		p, any := l.Look(ctx, began, changed)
		rest = time.Since(began) * share
		changed = nil
		if any || found {
			to.Send(told(func(b *Board) Effect { return b.Look(p) }))
		}
	}
}

// watch is notified of changes in folders. Without events from the system, polling has to do.
type watch struct {
	all *fsnotify.Watcher
	// blind says that some folder cannot be watched, and none that no folder can.
	blind, none bool
}

func newWatch() *watch {
	all, err := fsnotify.NewWatcher()
	if err != nil {
		return &watch{all: &fsnotify.Watcher{}, none: true} // its channels stay silent
	}
	return &watch{all: all}
}

func (w *watch) pollEvery() time.Duration {
	if w.none || w.blind {
		return blindEvery
	}
	return pollEvery
}

// follow watches these folders and no others.
func (w *watch) follow(dirs []string) {
	if w.none {
		return
	}
	w.blind = false
	for _, dir := range w.all.WatchList() {
		if !slices.Contains(dirs, dir) {
			_ = w.all.Remove(dir) // it may be gone
		}
	}
	for _, dir := range dirs {
		w.blind = w.all.Add(dir) != nil || w.blind
	}
}

func (w *watch) close() {
	if !w.none {
		_ = w.all.Close()
	}
}
