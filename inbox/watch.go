package inbox

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watcher tells when the queue file may have changed.
type Watcher struct {
	// C has a value after a change; several changes may be one value.
	C <-chan struct{}

	events *fsnotify.Watcher // nil where the system gives no events
	stop   chan struct{}
	once   sync.Once
}

// Watch follows the queue file, which need not exist yet, by the file system's
// events, and looks every poll (a second if 0) besides, for file systems that
// send none, and where all that the system has to give are taken. Close the
// watcher when done.
func (b *Inbox) Watch(poll time.Duration) *Watcher {
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
	go w.run(changed, b.name, poll, events, errs)
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

func (w *Watcher) run(changed chan<- struct{}, name string, poll time.Duration, events <-chan fsnotify.Event, errs <-chan error) {
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
			if filepath.Base(e.Name) != name {
				continue // our own state files change at every step
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
