package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked reports that a lock was not free in time.
var ErrLocked = errors.New("held by another process")

// ErrLockGone reports that the lock file was removed or replaced while the lock was held. Another
// process may then hold the lock too.
var ErrLockGone = errors.New("the lock's file was removed or replaced while it was held")

// Lock is an advisory lock (flock(2)) on a file. The kernel releases it when its holder dies.
type Lock struct{ f *File }

// AcquireLock creates the file at path if it is missing and waits for its lock. The error matches
// [ErrLocked] if ctx ends first, or if wait passes (0: no limit).
func AcquireLock(ctx context.Context, path string, wait time.Duration) (*Lock, error) {
	var deadline time.Time
	if wait > 0 {
		deadline = time.Now().Add(wait)
	}
	for {
		f, _, err := OpenWrite(path)
		if err != nil {
			return nil, err
		}
		if err := flock(ctx, f, deadline); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		current, err := stillNamed(f)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if current {
			return &Lock{f}, nil
		}
		// The file was removed while we waited. The next process locks a new file, so a lock on the
		// old one excludes nobody.
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// Identity returns the lock file's [File.Identity].
func (l *Lock) Identity() string { return l.f.Identity() }

// File returns the locked file. A holder that created it may fill it and then rename it into place.
func (l *Lock) File() *File { return l.f }

// Check must be called right before an action that needs the lock. An error that matches
// [ErrLockGone] means that the lock no longer excludes others.
func (l *Lock) Check() error {
	named, err := stillNamed(l.f)
	if err == nil && !named {
		err = l.f.fail("lock", ErrLockGone)
	}
	return err
}

// Sign writes the holder's name into the lock file, for people to read.
func (l *Lock) Sign(name string) error {
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	return l.f.WriteAt([]byte(name), 0)
}

// Release releases the lock. A nil lock is ignored.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	return l.f.Close()
}

const (
	firstPause = time.Millisecond / 2
	maxPause   = 10 * time.Millisecond
)

// flock polls with growing pauses. A blocking call would wake at once, but could not be cancelled:
// its thread would stay blocked while the holder lives.
func flock(ctx context.Context, f *File, deadline time.Time) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := retry(func() error { return unix.Flock(f.fd, unix.LOCK_EX|unix.LOCK_NB) })
		if err == nil {
			return nil
		}
		if err != unix.EWOULDBLOCK {
			return f.fail("lock", err)
		}
		if !deadline.IsZero() && time.Now().After(deadline) {
			return f.fail("lock", ErrLocked)
		}
		select {
		case <-ctx.Done():
			return f.fail("lock", fmt.Errorf("%w: %w", ErrLocked, context.Cause(ctx)))
		case <-time.After(pause):
		}
	}
}

func stillNamed(f *File) (bool, error) {
	named, err := StatName(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return named.Dev == f.info.Dev && named.Ino == f.info.Ino, err
}
