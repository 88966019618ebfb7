package babysitter

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/host"
)

// lockName is at the top of the run, where the CLI puts nothing of the kind and
// looks for nothing. A folder that it makes anew, such as journal/, would take the lock along.
const lockName = ".heartbeat-lock"

// LockRun makes this process the one heartbeat that writes to the run in runDir, for
// as long as it takes until release is called or the process dies. It waits for another
// one up to wait; 0 does not wait. Then the error is [ErrLocked].
//
// The lock is an advisory one (flock(2)) on .heartbeat-lock in the run's folder, which
// the CLI does not look at; the file stays. Every method that writes takes it for itself,
// for the length of its call. While this process holds it by LockRun its own calls go
// ahead, one after the other.
func LockRun(ctx context.Context, runDir string, wait time.Duration) (release func() error, err error) {
	r, err := runIn(runDir)
	if err != nil {
		return nil, err
	}
	lock, err := r.lock(ctx, wait)
	if err != nil {
		return nil, err
	}
	h := &holding{lock: lock, turn: make(chan struct{}, 1)}
	holdings.set(r.key(), h)
	return sync.OnceValue(func() error {
		h.turn <- struct{}{} // a call that goes ahead on its account ends first
		defer func() { <-h.turn }()
		h.over = true
		holdings.set(r.key(), nil)
		return h.lock.Release()
	}), nil
}

// holding is a run's lock, held by this process beyond single calls.
type holding struct {
	lock *disk.Lock
	turn chan struct{} // has room for the one whose turn it is
	over bool          // only whose turn it is looks
}

// table is of the holdings of this process, by [run.key].
type table struct {
	mu  sync.Mutex
	all map[string]*holding
}

var holdings = table{all: map[string]*holding{}}

func (t *table) set(key string, h *holding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h == nil {
		delete(t.all, key)
		return
	}
	t.all[key] = h
}

func (t *table) get(key string) *holding {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[key]
}

// key is the same for all paths to the run.
func (r run) key() string {
	if real, err := filepath.EvalSymlinks(r.dir); err == nil {
		return real
	}
	return r.dir
}

// lockForCall is for the length of one call.
func (r run) lockForCall(ctx context.Context, wait time.Duration) (release func() error, err error) {
	late := time.After(wait)
	for {
		h := holdings.get(r.key())
		if h == nil {
			lock, err := r.lock(ctx, wait)
			if err != nil {
				return nil, err
			}
			return lock.Release, nil
		}
		select {
		case <-ctx.Done():
			return nil, r.locked(context.Cause(ctx))
		case <-late:
			return nil, r.locked(nil)
		case h.turn <- struct{}{}:
		}
		if !h.over {
			return func() error { <-h.turn; return nil }, nil
		}
		<-h.turn
	}
}

func (r run) lock(ctx context.Context, wait time.Duration) (*disk.Lock, error) {
	lock, err := disk.AcquireLock(ctx, filepath.Join(r.dir, lockName), max(wait, 1))
	switch {
	case errors.Is(err, disk.ErrLocked):
		return nil, r.locked(err)
	case err != nil:
		return nil, fmt.Errorf("work on the run %s: its folder must be writable for this user: %w", r.dir, err)
	}
	return lock, nil
}

func (r run) locked(cause error) error {
	who := "another heartbeat"
	if pid := host.LockHolder(filepath.Join(r.dir, lockName)); pid > 0 {
		who = fmt.Sprintf("process %d", pid)
	}
	return &problem{ErrLocked, fmt.Sprintf("work on the run %s: %s does so: wait for it, or end it", r.dir, who), cause}
}
