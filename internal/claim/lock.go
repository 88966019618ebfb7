// Package claim keeps an inbox to one worker: a launcher or a session host, beside which
// no other session is at work, and whose queue no stranger can replace.
package claim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/host"
)

// BusyError says in a sentence who else works on the inbox.
type BusyError struct{ why string }

// Error implements error.
func (e BusyError) Error() string { return e.why }

// lockPatience covers the moment in which another worker is about to end.
const lockPatience = 50 * time.Millisecond

// Take keeps other workers off the inbox until the lock is released, or its holder dies.
// The process's number is in the file for people. The error is a [BusyError] if another
// one has the lock.
func Take(box *inbox.Inbox) (*disk.Lock, error) {
	path := filepath.Join(box.Dir(), ".launch-lock")
	lock, err := disk.AcquireLock(context.Background(), path, lockPatience)
	if err == nil {
		err = lock.Sign(strconv.Itoa(os.Getpid()) + "\n")
	}
	switch {
	case errors.Is(err, disk.ErrLocked):
		return nil, BusyError{"another launcher (" + holder(path) + ") works on this inbox already"}
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock the inbox: %w", err), lock.Release())
	}
	return lock, nil
}

func holder(path string) string {
	if pid := host.LockHolder(path); pid > 0 {
		return "process " + strconv.Itoa(pid)
	}
	text, err := disk.ReadState(path, 4096)
	first, _, _ := strings.Cut(string(text), "\n")
	if pid, notOne := strconv.Atoi(first); err == nil && notOne == nil {
		return "process " + strconv.Itoa(pid)
	}
	return "a process that cannot be told"
}
