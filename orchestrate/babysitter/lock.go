package babysitter

import (
	"context"
	"time"
)

// LockRun makes this process the one heartbeat that writes to the run in runDir, for
// as long as it takes until release is called or the process dies. It waits for another
// one up to wait; 0 does not wait. Then the error is [ErrLocked].
//
// The lock is an advisory one (flock(2)) on .heartbeat-lock in the run's folder, which
// the CLI does not look at; the file stays. Every method that writes takes it for itself,
// for the length of its call. While this process holds it by LockRun its own calls go
// ahead, one after the other.
func LockRun(ctx context.Context, runDir string, wait time.Duration) (release func() error, err error) {
	panic("todo")
}
