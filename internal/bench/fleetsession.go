package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/inbox"
)

// sessions are scripted sessions, one for each inbox.
type sessions struct {
	b       *bench
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	hooks   atomic.Bool // start a process for each stop
	answers atomic.Int64
	waited  int64 // answers that [sessions.await] has returned for
	told    chan struct{}
	failed  chan error
}

func newSessions(b *bench) *sessions {
	s := &sessions{b: b, told: make(chan struct{}, 1), failed: make(chan error, 1)}
	s.ctx, s.cancel = context.WithCancel(b.ctx)
	return s
}

// start starts a session.
func (s *sessions) start(path string) error {
	box, err := inbox.Open(path, inbox.Options{LockWait: patience})
	if err != nil {
		return err
	}
	input, err := newSession(filepath.Dir(path))
	if err != nil {
		return err
	}
	r, err := s.b.runner()
	if err != nil {
		return err
	}
	one := &scripted{sessions: s, runner: r, session: input, box: box, path: path}
	s.running.Go(func() {
		defer r.close()
		if err := one.work(); err != nil && s.ctx.Err() == nil {
			select {
			case s.failed <- fmt.Errorf("session of %s: %w", path, err):
			default:
			}
		}
	})
	return nil
}

// await waits for so many more answers.
func (s *sessions) await(ctx context.Context, n int) error {
	s.waited += int64(n)
	for s.answers.Load() < s.waited {
		select {
		case <-s.told:
		case err := <-s.failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("wait for answers, of which %d of %d are there: %w", s.answers.Load(), s.waited, ctx.Err())
		}
	}
	return nil
}

func (s *sessions) end() error {
	s.cancel()
	s.running.Wait()
	select {
	case err := <-s.failed:
		return err
	default:
		return nil
	}
}

// scripted is a session that answers an entry at once.
type scripted struct {
	*sessions
	*runner
	*session
	box  *inbox.Inbox
	path string
	busy bool // it was given an entry
}

// work answers until the sessions end. It looks again whenever something changes.
func (s *scripted) work() error {
	w := s.box.Watch(5 * time.Second)
	defer func() { _ = w.Close() }() // nothing is lost
	for {
		stop := s.stopInProcess
		if s.hooks.Load() {
			stop = s.stopByHook
		}
		gave, err := stop()
		if err != nil {
			return err
		}
		if s.busy {
			s.answers.Add(1)
			select {
			case s.told <- struct{}{}:
			default:
			}
		}
		if s.busy = gave; gave {
			continue
		}
		select {
		case <-w.C:
		case <-s.sessions.ctx.Done():
			return nil
		}
	}
}

// stopInProcess makes the hook's writes at the end of a turn: it acknowledges what was
// given, gives what is next, and commits that.
func (s *scripted) stopInProcess() (gave bool, err error) {
	tx, err := s.box.Begin(s.sessions.ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, tx.Close()) }()
	if tx.InFlight() != nil {
		if err := tx.Acknowledge("done, and the tests pass"); err != nil {
			return false, err
		}
	}
	e, err := tx.Next(inbox.Mark{})
	switch {
	case errors.Is(err, inbox.ErrEmpty), errors.Is(err, inbox.ErrTorn):
		err = nil
	case err != nil:
		return false, err
	default:
		if _, err := tx.Deliver(e, inbox.Recipient{SessionID: s.input.SessionID}); err != nil {
			return false, err
		}
		gave = true
	}
	if tx.Dirty() {
		err = tx.Commit()
	}
	return gave, err
}

// stopByHook starts the hook.
func (s *scripted) stopByHook() (gave bool, err error) {
	if waits, err := s.waits(); err != nil || !waits && !s.busy {
		return false, err
	}
	stdin, err := s.stop()
	if err != nil {
		return false, err
	}
	out, _, err := s.run(stdin, s.b.programs.hook, "--inbox", s.path)
	return len(out) > 0, err
}

// waits reports whether there is an entry to start a hook for.
func (s *scripted) waits() (yes bool, err error) {
	v, err := s.box.View()
	if err != nil {
		return false, err
	}
	b, err := v.Backlog(s.sessions.ctx)
	return b.Entries > 0, errors.Join(err, v.Close())
}
