package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/fsnotify/fsnotify"

	"heartbeat/internal/disk"
)

type ending struct {
	outcome  Outcome
	stopping bool             // the session was asked to end, or the command has ended and other processes run on
	wish     Cause            // why to end the session as soon as it may end; Ended for not yet
	later    <-chan time.Time // when to check again whether it may
}

// stop asks the command's process group to end. The other processes are asked only after the command has
// ended, so that the command can end its own children in order.
func (s *session) stop(why Outcome) {
	if s.stopping {
		return // the first reason counts
	}
	s.outcome, s.stopping = why, true
	s.deafen()
	s.family.End(s.Grace)
}

// abandon kills what is left when [Run] returns early, and tells of what cannot be killed. An orderly end leaves nothing.
func (s *session) abandon() {
	s.family.End(0)
	<-s.family.Over()
	left, stuck := s.family.Stuck()
	if !stuck {
		return
	}
	which := "it cannot be listed either"
	for i, p := range left {
		if i == 0 {
			which = "process"
		}
		which += " " + strconv.Itoa(p.PID)
	}
	s.Note("what the command left behind cannot be killed (%s): end it by hand", which)
}

// pollEvery is how often to look for the file where the system sends no file events.
const pollEvery = 250 * time.Millisecond

// awaitFile removes a file of Options.ExitSignal that an earlier session left, then starts to watch for it: once
// the file appears, session.asked gets a value.
func (s *session) awaitFile() error {
	if s.ExitSignal == "" {
		return nil
	}
	path, err := filepath.Abs(s.ExitSignal)
	if err != nil {
		return fmt.Errorf("exit signal %s: %w", s.ExitSignal, err)
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("exit signal %s: there is no directory %s for it: make it first", s.ExitSignal, dir)
	}
	if err := removeFile(path); err != nil {
		return fmt.Errorf("exit signal: remove the file that is already there: %w: remove it, or name another one", err)
	}
	var events <-chan fsnotify.Event
	var errs <-chan error // an error means lost events: check again
	var tick <-chan time.Time
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		events, errs = watcher.Events, watcher.Errors
		err = watcher.Add(dir)
	}
	if err != nil {
		tick = time.Tick(pollEvery)
		s.Note("exit signal %s: the system sends no file events (%v): looking for it every %v instead", s.ExitSignal, err, pollEvery)
	}
	seen := make(chan struct{}, 1)
	s.asked = seen
	s.joined.Go(func() {
		if watcher != nil {
			defer watcher.Close() // nothing is lost
		}
		s.safely(func() {
			for there, _ := disk.Exists(path); !there; there, _ = disk.Exists(path) {
				select {
				case <-events:
				case <-errs:
				case <-tick:
				case <-s.done:
					return
				}
			}
			_ = removeFile(path) // if it fails, the next session removes it
			seen <- struct{}{}
		})
	})
	return nil
}

// removeFile removes a file that may be missing, but no directory.
func removeFile(path string) error {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return &fs.PathError{Op: "remove", Path: path, Err: errors.New("it is a directory")}
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
