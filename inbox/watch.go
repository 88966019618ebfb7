package inbox

import (
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
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
// not exist yet, and the end of a pause. It does so by the file system's events,
// and looks every poll (a second if 0) besides, for file systems that send none,
// and where all that the system has to give are taken. Close the watcher when
// done.
func (b *Inbox) Watch(poll time.Duration) *Watcher {
	return b.watch(poll, b.name, journalName)
}

// WatchOutcomes follows results, dead letters and events, as [Inbox.Watch] does.
func (b *Inbox) WatchOutcomes(poll time.Duration) *Watcher {
	return b.watch(poll, resultsName, deadLetterName, eventsName)
}

// WatchAll follows every file of the inbox, as [Inbox.Watch] does.
func (b *Inbox) WatchAll(poll time.Duration) *Watcher { return b.watch(poll) }

// watch follows the files of those names, all if there are none.
func (b *Inbox) watch(poll time.Duration, names ...string) *Watcher {
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
	go w.run(changed, names, poll, events, errs)
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

func (w *Watcher) run(changed chan<- struct{}, names []string, poll time.Duration, events <-chan fsnotify.Event, errs <-chan error) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
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
