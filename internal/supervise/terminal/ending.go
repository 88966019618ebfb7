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

	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
)

const (
	// sweepEvery is how often to look for processes started while the others were being killed. The
	// search ends after sweepFor: the kernel may keep a process from dying.
	sweepEvery = 10 * time.Millisecond
	sweepFor   = 2 * time.Second
)

type ending struct {
	outcome  Outcome
	stopping bool // it was asked to end, or the command has ended and others run on
	family   guardian.Ending
	alone    bool // this process has no child left
	over     bool // no process of the session is left
	timeout  *time.Timer
	grace    *time.Timer
	wish     Cause       // why to end it as soon as it may; Ended for not yet
	later    *time.Timer // when to ask again whether it may
	sweep    *time.Timer
	killedAt time.Duration
}

// stop asks the command's process group to end. The other processes are asked after the command has
// ended, so that it can end its own children in order.
func (s *session) stop(why Outcome) {
	if s.stopping {
		return // the first reason counts
	}
	why.Status = s.outcome.Status
	s.outcome = why
	s.beginGrace()
	s.family.Ask()
}

func (s *session) beginGrace() {
	s.stopping = true
	s.deafen()
	s.grace = time.NewTimer(s.Grace)
}

// bury records a death. The last one ends the session.
func (s *session) bury(d death) {
	if d.leader {
		s.family.Gone, s.outcome.Status = true, d.status
	}
	s.alone = s.alone || d.alone
	switch {
	case s.alone && guardian.Adopts:
		s.over = true
	case s.family.Gone:
		if !s.stopping {
			s.beginGrace()
		}
		s.press()
		if s.alone && s.sweep == nil {
			s.sweep = time.NewTimer(sweepEvery) // the others are not children: poll for their deaths
		}
	}
}

// press signals everybody who is left to end, and returns them.
func (s *session) press() []machine.Entry {
	left := guardian.Family(s.family.Leader, func(pid int) bool { return s.strangers[pid] })
	// A child that has just died must still be reaped, unless strangers run on.
	s.over = s.family.Gone && len(left) == 0 && (s.alone || s.crowded)
	s.family.Press(left)
	return left
}

func (s *session) kill() {
	if s.family.Killing {
		return
	}
	s.killedAt = s.now()
	s.family.Kill()
	s.press()
	if s.sweep == nil {
		s.sweep = time.NewTimer(sweepEvery)
	}
}

func (s *session) sweepUp() {
	left := s.press()
	s.sweep.Reset(sweepEvery)
	if !s.family.Killing || s.now()-s.killedAt < sweepFor {
		return
	}
	if !s.over {
		which := "it cannot be listed either"
		for i, p := range left {
			if i == 0 {
				which = "process"
			}
			which += " " + strconv.Itoa(p.PID)
		}
		s.Note("what the command left behind cannot be killed (%s): end it by hand", which)
	}
	s.over = true
}

// abandon kills whatever is left when a run returns early. After an orderly end nothing is.
func (s *session) abandon() {
	if s.over {
		return
	}
	s.family.Kill()
	s.press()
	for limit := time.After(sweepFor); !s.over; {
		select {
		case d := <-s.deaths:
			s.bury(d)
		case <-limit:
			return
		}
	}
}

// lookEvery is how often to look for the file where the system sends no file events.
const lookEvery = 250 * time.Millisecond

// asking waits for the file of Options.ExitSignal.
type asking struct {
	path    string
	seen    chan struct{}
	watcher *fsnotify.Watcher // nil if the system sends no events
}

// awaitFile first removes the file if an earlier session left one.
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
	var events <-chan fsnotify.Event
	var errs <-chan error // an error means lost events: look again
	var tick <-chan time.Time
	if a.watcher, err = fsnotify.NewWatcher(); err == nil {
		events, errs = a.watcher.Events, a.watcher.Errors
		err = a.watcher.Add(dir)
	}
	if err != nil {
		tick = time.Tick(lookEvery)
		s.Note("exit signal %s: the system sends no file events (%v): looking for it every %v instead", s.ExitSignal, err, lookEvery)
	}
	if err := a.remove(); err != nil {
		a.close()
		return nil, fmt.Errorf("exit signal: remove the file that is already there: %w: remove it, or name another one", err)
	}
	s.joined.Go(func() {
		s.safely(func() {
			for !a.isThere() {
				select {
				case <-events:
				case <-errs:
				case <-tick:
				case <-s.done:
					return
				}
			}
			_ = a.remove() // if it fails, the next session removes it
			a.seen <- struct{}{}
		})
	})
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
