package inbox

import (
	"path/filepath"
	"slices"
	"sync"
	"time"

	"heartbeat/internal/journal"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// Watcher signals that files of an inbox may have changed.
type Watcher struct {
	// C has a value after a change; several changes may be one value.
	C <-chan struct{}

	events *fsnotify.Watcher // nil if the system gives no events
	stop   chan struct{}
	once   sync.Once
}

// Watch signals what a waiting consumer must know: changes of the queue file,
// which need not exist yet, and every commit of somebody else. It uses the file
// system's events. Besides, it compares sizes and times every poll (a second if
// 0), for file systems that send no events and for when the system has no watches
// left. Close the watcher when done.
func (b *Inbox) Watch(poll time.Duration) *Watcher {
	var seen sighting
	return b.watch(poll, func() bool {
		before := seen
		seen = sighting{sightOf(b.path), sightOf(b.beside(journal.JournalName)), sightOf(b.fileOf(journal.Scheduled))}
		return seen != before
	}, b.name, journal.JournalName)
}

// sighting is what the files' names show without reading the files.
type sighting [3]sight

type sight struct {
	dev, ino    uint64
	size, mtime int64
}

func sightOf(path string) sight {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return sight{}
	}
	return sight{uint64(st.Dev), st.Ino, st.Size, st.Mtim.Nano()}
}

// always is for callers that want to look at every poll.
func always() bool { return true }

// WatchOutcomes signals changes of results, dead letters and events, as
// [Inbox.Watch] does, and signals at every poll.
func (b *Inbox) WatchOutcomes(poll time.Duration) *Watcher {
	var names []string
	for _, kind := range outcomeKinds {
		names = append(names, kind.Name())
	}
	return b.watch(poll, always, names...)
}

// WatchAll signals changes of every file of the inbox, and signals at every poll.
func (b *Inbox) WatchAll(poll time.Duration) *Watcher { return b.watch(poll, always) }

// watch signals changes of the files of those names, of all if there are none. At
// every poll it asks changedSince whether to signal.
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
	go w.run(changed, changedSince, names, poll, events, errs)
	return w
}

// Close stops the watching.
func (w *Watcher) Close() error {
	w.once.Do(func() { close(w.stop) })
	if w.events == nil {
		return nil
	}
	return w.events.Close()
}

func (w *Watcher) run(changed chan<- struct{}, changedSince func() bool, names []string, poll time.Duration, events <-chan fsnotify.Event, errs <-chan error) {
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
		case _, ok := <-errs:
			if !ok {
				return // a queue overflow: something changed, so look
			}
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}
