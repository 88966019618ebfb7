package managed

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

// busyError says who else works on the inbox.
type busyError struct{ who string }

func (e busyError) Error() string { return e.who + " works on this inbox already" }

// lockPatience covers the moment in which another launcher is about to end.
const lockPatience = 50 * time.Millisecond

// lockInbox keeps other launchers off the inbox. The kernel releases the lock when this
// process dies; the process's number is in the file for people.
func lockInbox(box *inbox.Inbox) (*disk.Lock, error) {
	path := filepath.Join(box.Dir(), ".launch-lock")
	lock, err := disk.AcquireLock(context.Background(), path, lockPatience)
	if err == nil {
		err = lock.Sign(strconv.Itoa(os.Getpid()) + "\n")
	}
	switch {
	case errors.Is(err, disk.ErrLocked):
		return nil, busyError{"another launcher (" + holder(path) + ")"}
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
