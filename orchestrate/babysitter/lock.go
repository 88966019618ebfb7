package babysitter

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/host"
)

// lockName is the file by which one heartbeat at a time writes to a run, with an
// advisory lock (flock(2)) that the CLI does not look at. The file stays. It is at the
// top of the run, where the CLI has no such file: a folder that the CLI makes anew, such
// as journal/, would take the lock along.
const lockName = ".heartbeat-lock"

// lock waits for other writers up to wait; then the error is [ErrLocked].
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
