package inbox

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watcher tells when the queue file may have changed.
type Watcher struct {
	// C has a value after a change; several changes may be one value.
	C <-chan struct{}

	events *fsnotify.Watcher
	stop   chan struct{}
	once   sync.Once
}

// Watch follows the queue file, which need not exist yet, by the file system's
// events, and looks every poll (a second if 0) besides, for file systems that
// send none. Close the watcher when done.
func (b *Inbox) Watch(poll time.Duration) (*Watcher, error) {
	if poll <= 0 {
		poll = time.Second
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch inbox %s: %w", b.path, err)
	}
	if err := events.Add(b.dir); err != nil {
		_ = events.Close() // best effort: it watches nothing
		return nil, fmt.Errorf("watch inbox %s: %w", b.path, err)
	}
	changed := make(chan struct{}, 1)
	w := &Watcher{C: changed, events: events, stop: make(chan struct{})}
	go w.run(changed, b.name, poll)
	return w, nil
}

// Close ends the watching.
func (w *Watcher) Close() error {
	w.once.Do(func() { close(w.stop) })
	return w.events.Close()
}

func (w *Watcher) run(changed chan<- struct{}, name string, poll time.Duration) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		case e, ok := <-w.events.Events:
			if !ok {
				return
			}
			if filepath.Base(e.Name) != name {
				continue // our own state files change at every step
			}
		case _, ok := <-w.events.Errors:
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
