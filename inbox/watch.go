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

// Watcher tells when files of an inbox may have changed.
type Watcher struct {
	// C has a value after a change; several changes may be one value.
	C <-chan struct{}

	events *fsnotify.Watcher // nil where the system gives no events
	stop   chan struct{}
	once   sync.Once
}

// Watch follows what a waiting consumer must know of: the queue file, which need
// not exist yet, and every step that somebody else takes. It does so by the file
// system's events, and every poll (a second if 0) compares the files' sizes and
// times besides, for file systems that send none, and where all that the system
// has to give are taken. Close the watcher when done.
func (b *Inbox) Watch(poll time.Duration) *Watcher {
	var seen sighting
	return b.watch(poll, func() bool {
		before := seen
		seen = sighting{sightOf(b.path), sightOf(b.file(journal.JournalName)), sightOf(b.fileOf(journal.Scheduled))}
		return seen != before
	}, b.name, journal.JournalName)
}

// sighting is what a look at the files' names shows, without reading them.
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

// always is for those who want to look at every poll.
func always() bool { return true }

// WatchOutcomes follows results, dead letters and events, as [Inbox.Watch] does,
// but has something to say at every poll.
func (b *Inbox) WatchOutcomes(poll time.Duration) *Watcher {
	var names []string
	for _, kind := range outcomeKinds {
		names = append(names, kind.Name())
	}
	return b.watch(poll, always, names...)
}

// WatchAll follows every file of the inbox, as [Inbox.WatchOutcomes] does its own.
func (b *Inbox) WatchAll(poll time.Duration) *Watcher { return b.watch(poll, always) }

// watch follows the files of those names, all if there are none. At every poll it
// asks whether there is anything to look at.
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
	changedSince() // from here on
	go w.run(changed, changedSince, names, poll, events, errs)
	return w
}

// Close ends the watching.
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
