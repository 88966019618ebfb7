package inbox

import (
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
)

// Watcher signals that files of an inbox may have changed.
type Watcher struct {
	// C receives a value after a change. Several changes may share one value.
	C <-chan struct{}

	events *fsnotify.Watcher // nil if the system offers no events
	stop   chan struct{}
	once   sync.Once
}

// Watch signals changes of the queue file, which need not exist yet, and every commit of another process. It
// uses file system events. Every poll (a second if 0) it also compares sizes and times, for file systems
// without events and for when the system has run out of watches. Close the watcher when done.
func (b *Inbox) Watch(poll time.Duration) *Watcher {
	var seen sighting
	return b.watch(poll, func() bool {
		before := seen
		seen = sighting{sightOf(b.path), sightOf(b.beside(journal.JournalName)), sightOf(b.fileOf(journal.Scheduled))}
		return seen != before
	}, b.name, journal.JournalName)
}

// sighting is what stat shows of the queue file, the journal and the scheduled entries.
type sighting [3]sight

type sight struct {
	dev, ino    uint64
	size, mtime int64
}

func sightOf(path string) sight {
	info, _ := disk.StatFile(path) // zero if the file does not exist
	return sight{info.Dev, info.Ino, info.Size, info.Mtime}
}

// always makes a watcher signal at every poll.
func always() bool { return true }

// WatchOutcomes signals changes of results, dead letters and events, and also at every poll.
func (b *Inbox) WatchOutcomes(poll time.Duration) *Watcher {
	var names []string
	for _, kind := range journal.OutcomeKinds {
		names = append(names, kind.Name())
	}
	return b.watch(poll, always, names...)
}

// WatchAll signals changes of every file of the inbox, and also at every poll.
func (b *Inbox) WatchAll(poll time.Duration) *Watcher { return b.watch(poll, always) }

// watch signals changes of the named files, or of all files without names. At every poll it signals if
// changedSince returns true.
func (b *Inbox) watch(poll time.Duration, changedSince func() bool, names ...string) *Watcher {
	if poll <= 0 {
		poll = time.Second
	}
	changed := make(chan struct{}, 1)
	w := &Watcher{C: changed, stop: make(chan struct{})}
	var events chan fsnotify.Event
	var errs chan error
	if all, err := fsnotify.NewWatcher(); err == nil {
		w.events = all
		if err := all.Add(b.dir); err == nil {
			events, errs = all.Events, all.Errors
		}
	}
	changedSince() // changes count from here on
	go func() {
		tick := time.NewTicker(poll)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
				if !changedSince() {
					continue
				}
			case e, ok := <-events:
				if !ok {
					return
				}
				if len(names) > 0 && !slices.Contains(names, filepath.Base(e.Name)) {
					continue // other state files change at every step
				}
			case _, ok := <-errs: // events were lost, so something changed
				if !ok {
					return
				}
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	return w
}

// Close stops the watcher.
func (w *Watcher) Close() error {
	w.once.Do(func() { close(w.stop) })
	if w.events == nil {
		return nil
	}
	return w.events.Close()
}
