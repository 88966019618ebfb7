package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// lookEvery is how often to look for the file where the system sends no file events.
const lookEvery = 250 * time.Millisecond

// asking waits for the file that ends a session.
type asking struct {
	path    string
	seen    chan struct{}
	watcher *fsnotify.Watcher // nil if the system sends no events
	events  <-chan fsnotify.Event
	errs    <-chan error // an error means lost events: look again
	tick    <-chan time.Time
}

// awaitFile waits for the file of Options.ExitSignal. First it removes one that an earlier session left.
func awaitFile(s *session) (*asking, error) {
	a := &asking{}
	if s.ExitSignal == "" {
		return a, nil
	}
	var err error
	if a.path, err = filepath.Abs(s.ExitSignal); err != nil {
		return nil, fmt.Errorf("exit signal %s: %w", s.ExitSignal, err)
	}
	dir := filepath.Dir(a.path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("exit signal %s: there is no directory %s for it: make it first", s.ExitSignal, dir)
	}
	a.seen = make(chan struct{}, 1)
	if a.watcher, err = fsnotify.NewWatcher(); err == nil {
		a.events, a.errs = a.watcher.Events, a.watcher.Errors
		err = a.watcher.Add(dir)
	}
	if err != nil {
		a.tick = time.Tick(lookEvery)
		s.Note("exit signal %s: the system sends no file events (%v): looking for it every %v instead", s.ExitSignal, err, lookEvery)
	}
	if err := a.remove(); err != nil {
		a.close()
		return nil, fmt.Errorf("exit signal: remove the file that is already there: %w: remove it, or name another one", err)
	}
	s.joined.Go(func() { s.safely(func() { a.wait(s.done) }) })
	return a, nil
}

func (a *asking) remove() error {
	if info, err := os.Lstat(a.path); err == nil && info.IsDir() {
		return &fs.PathError{Op: "remove", Path: a.path, Err: errors.New("it is a directory")}
	}
	if err := os.Remove(a.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// wait looks whenever something happens in the directory.
func (a *asking) wait(done <-chan struct{}) {
	for !a.isThere() {
		select {
		case <-a.events:
		case <-a.errs:
		case <-a.tick:
		case <-done:
			return
		}
	}
	_ = a.remove() // if it fails, the next session removes it
	a.seen <- struct{}{}
}

// isThere reports whether the name exists, even as a dangling link.
func (a *asking) isThere() bool {
	_, err := os.Lstat(a.path)
	return err == nil
}

func (a *asking) close() {
	if a.watcher != nil {
		_ = a.watcher.Close() // nothing is lost
	}
}
