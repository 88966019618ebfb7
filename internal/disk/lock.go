package disk

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked says that a lock was not to be had in time.
var ErrLocked = errors.New("held by another process")

// Lock is an advisory lock (flock(2)) on a file. The kernel releases it when
// its holder dies.
type Lock struct{ f *File }

// AcquireLock waits for the lock on path, which it creates, until ctx is done or
// the wait (if not 0) is over; then the error matches [ErrLocked].
func AcquireLock(ctx context.Context, path string, wait time.Duration) (*Lock, error) {
	for {
		f, _, err := OpenWrite(path)
		if err != nil {
			return nil, err
		}
		if err := flock(ctx, f, wait); err != nil {
			return nil, err
		}
		current, err := stillNamed(f)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if current {
			return &Lock{f}, nil
		}
		// Somebody removed the file while we waited: whoever comes next
		// locks the new one, so a lock on the old one excludes nobody.
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// Release gives the lock back.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	return l.f.Close()
}

// flock closes f when it fails. The kernel queues waiters fairly and wakes them
// at once, so the wait is a blocking call in a goroutine, not a poll.
func flock(ctx context.Context, f *File, wait time.Duration) error {
	err := unix.Flock(f.fd, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return nil
	}
	if err != unix.EWOULDBLOCK && err != unix.EINTR {
		return errors.Join(f.fail("lock", err), f.Close())
	}
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	got := make(chan error, 1)
	go func() {
		err := unix.Flock(f.fd, unix.LOCK_EX)
		for err == unix.EINTR {
			err = unix.Flock(f.fd, unix.LOCK_EX)
		}
		got <- err
	}()
	select {
	case err := <-got:
		if err != nil {
			return errors.Join(f.fail("lock", err), f.Close())
		}
		return nil
	case <-ctx.Done():
		go func() { <-got; _ = f.Close() }() // best effort: nobody holds this lock's file any more
		return f.fail("lock", errors.Join(ErrLocked, context.Cause(ctx)))
	}
}

func stillNamed(f *File) (bool, error) {
	var st unix.Stat_t
	err := unix.Lstat(f.path, &st)
	if err == unix.ENOENT {
		return false, nil
	}
	if err != nil {
		return false, f.fail("stat", err)
	}
	named := infoOf(&st)
	return named.Dev == f.info.Dev && named.Ino == f.info.Ino, nil
}
