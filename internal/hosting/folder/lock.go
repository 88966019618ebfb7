package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"sync"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/machine"
)

// BusyError means that another process holds a session's lock.
type BusyError struct {
	ID  string
	PID int // of the holder, not positive if unknown
}

func (e *BusyError) Error() string {
	who := "an unknown process"
	if e.PID > 0 {
		who = "process " + strconv.Itoa(e.PID)
	}
	return who + " already works on session " + e.ID
}

func (e *BusyError) Unwrap() error { return disk.ErrLocked }

// Lock is held by a session's host from its first act to its last, and by a process that finishes or
// removes a dead session. The kernel releases it when its holder dies. It is safe for concurrent use.
type Lock struct {
	Folder     Folder
	DB         *store.Store // opened for this session alone; Release closes it
	mu         sync.Mutex
	lock       *disk.Lock
	configured bool // the record's config was written
}

// lockPatience covers the moment in which another holder ends.
const lockPatience = 50 * time.Millisecond

// Claim makes the folder if there is none, and takes its lock. The error is a [*BusyError] if another process has it.
func (f Folder) Claim(ctx context.Context) (*Lock, error) {
	for tries := 1; ; tries++ {
		err := makeDirs(Root(f.DB), f.Dir())
		var lock *Lock
		if err == nil {
			lock, err = f.Lock(ctx)
		}
		if err == nil {
			// Under the lock, since a purge may have removed part of the folder.
			if err = f.Make(); err == nil {
				return lock, nil
			}
			err = errors.Join(err, lock.Release())
		}
		if !errors.Is(err, fs.ErrNotExist) || tries == 10 {
			return nil, err
		}
		// The folder was purged meanwhile.
	}
}

// Lock takes the lock of an existing folder, and converts a record of an older release. If another process
// holds the lock, the error is a [*BusyError]; without a folder it matches [fs.ErrNotExist].
func (f Folder) Lock(ctx context.Context) (*Lock, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	lock, err := disk.AcquireLock(ctx, f.LockPath(), lockPatience)
	switch {
	case errors.Is(err, disk.ErrLocked) && ctx.Err() == nil:
		return nil, &BusyError{ID: f.ID, PID: f.Holder()}
	case err != nil:
		return nil, fmt.Errorf("lock session %s: %w", f.ID, err)
	}
	l := &Lock{Folder: f, DB: store.In(Root(f.DB), f.ID), lock: lock}
	if err := l.adopt(); err != nil {
		return nil, errors.Join(err, l.Release())
	}
	return l, nil
}

// Holder returns the pid of the process that holds the lock, -1 if the holder has no pid here, 0 if the lock is free.
func (f Folder) Holder() int { return machine.LockHolder(f.LockPath()) }

// IsHosted reports whether the session's host is known to live. If the caller holds the session's lock, the host's own
// lock file was removed, and another made. The caller may be that host, which also finishes the sessions beside its own.
func IsHosted(s *State) bool {
	if s.Host == nil {
		return false
	}
	alive, known := s.Host.Alive()
	return alive && known
}

// retake takes the lock again after its file, or the whole folder, was removed, as the session's tools may do, and adds
// a warning to the record. If another process holds the new lock, a later write tries again.
func (l *Lock) retake(s *State) {
	again, err := l.Folder.Claim(context.Background())
	if err != nil {
		return
	}
	_ = l.lock.Release() // the locked file has no name any more
	l.lock = again.lock
	s.Warn("the session's folder, or its lock, was removed while it was hosted, and made again")
}

// Release gives the lock back. A second call does nothing.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	err := errors.Join(l.DB.Close(), l.lock.Release())
	l.lock = nil
	return err
}

// Process identifies a process, even after its pid was reused.
type Process struct {
	PID       int    `json:"pid"`
	Start     int64  `json:"start"`               // clock ticks since boot, see [machine.ProcessStart]
	Boot      string `json:"boot,omitempty"`      // see [machine.BootID]
	Namespace string `json:"namespace,omitempty"` // see [machine.PIDNamespace]
}

// ProcessOf identifies the process that has this pid now. Start is 0 if there is none.
func ProcessOf(pid int) Process {
	return Process{PID: pid, Start: machine.ProcessStart(pid), Boot: machine.BootID(), Namespace: machine.PIDNamespace()}
}

// Alive reports whether the process still runs. known is false if its pid is 0 or of another namespace.
func (p Process) Alive() (alive, known bool) {
	life := machine.LifeOf(p.Boot, p.Namespace, p.PID, p.Start)
	return life == machine.Alive, life != machine.Unknown
}
