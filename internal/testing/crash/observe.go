package crash

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// NeedsSpace are the kinds of call that a full disk refuses.
var NeedsSpace = []disk.Kind{disk.OpCreate, disk.OpWrite}

// Observe shows o every state-changing call of this process until stop is called or
// the test ends. A process has only one observer, so such tests cannot run in
// parallel.
func Observe(t testing.TB, o disk.Observer) (stop func()) {
	t.Helper()
	if disk.TestOnlyObserver != nil {
		t.Fatal("crash: another observer is at work: combine them with Chain, and do not run such tests in parallel")
	}
	disk.TestOnlyObserver = o
	stopped := false
	stop = func() {
		if !stopped {
			stopped, disk.TestOnlyObserver = true, nil
		}
	}
	t.Cleanup(stop)
	return stop
}

// Chain asks each observer in turn until one returns an error.
func Chain(observers ...disk.Observer) disk.Observer {
	return func(op disk.Op) error {
		for _, o := range observers {
			if err := o(op); err != nil {
				return err
			}
		}
		return nil
	}
}

// KillAt kills this process with SIGKILL just before its n-th call (from 1). If torn
// is set and the call writes more than one byte, half of the bytes are written first.
func KillAt(n int, torn bool) disk.Observer {
	return from(n, func(i int, op disk.Op) error {
		if i == n && torn && tearable(op) {
			return &disk.Torn{N: len(op.Data) / 2, Then: die}
		}
		if i == n {
			return die()
		}
		return nil
	})
}

// FailAt makes only the n-th call (from 1) fail with err.
func FailAt(n int, err error) disk.Observer {
	return from(n, func(i int, op disk.Op) error {
		if i != n {
			return nil
		}
		return err
	})
}

// TearAt is [FailAt] after half of the bytes were written, as on a disk that fills
// up. A call that does not write more than one byte just fails.
func TearAt(n int, err error) disk.Observer {
	return from(n, func(i int, op disk.Op) error {
		if i != n {
			return nil
		}
		if !tearable(op) {
			return err
		}
		return &disk.Torn{N: len(op.Data) / 2, Then: func() error {
			return &fs.PathError{Op: string(op.Kind), Path: op.Path, Err: err}
		}}
	})
}

// FailFrom makes the n-th call (from 1, of any kind) and all later ones fail with
// err. If kinds are given, such as [NeedsSpace], other kinds still work.
func FailFrom(n int, err error, kinds ...disk.Kind) disk.Observer {
	return from(n, func(_ int, op disk.Op) error {
		if len(kinds) > 0 && !slices.Contains(kinds, op.Kind) {
			return nil
		}
		return err
	})
}

// from calls act with the number of the n-th call and of every later one.
func from(n int, act func(i int, op disk.Op) error) disk.Observer {
	var seen atomic.Int64
	return func(op disk.Op) error {
		i := int(seen.Add(1))
		if i < n {
			return nil
		}
		return act(i, op)
	}
}

func tearable(op disk.Op) bool { return op.Kind == disk.OpWrite && len(op.Data) > 1 }

func die() error {
	if err := unix.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		return errors.Join(errors.New("crash: kill this process"), err)
	}
	select {} // the signal is on its way
}
