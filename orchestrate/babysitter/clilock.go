package babysitter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// unwritten is how long the CLI's lock may be there without its content. The CLI makes
// and fills it in two steps, milliseconds apart.
const unwritten = 2 * time.Second

// cliLock is what the CLI writes into run.lock.
type cliLock struct {
	PID   int
	Owner text
}

func (r run) cliLockPath() string { return filepath.Join(r.dir, "run.lock") }

// clearLock removes a lock that belongs to nobody and that the CLI would never remove: one
// that cannot be read, left by a full disk or a power loss, which fails every command; and
// one whose process number now belongs to another program. The CLI itself removes the lock
// of a process that has ended.
func (r run) clearLock(ctx context.Context, c *CLI) error {
	content, err := r.readCLILock()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("work on the run %s: its run.lock, which the CLI would wait for: %w", r.dir, err)
	}
	if err != nil {
		return nil
	}
	why := ""
	if holder, ok := readLock(content); !ok {
		if still, err := r.unchanged(ctx, content); err != nil || !still {
			return err
		}
		why = "nothing in it says whose it is"
	} else if name := otherProgram(holder.PID); name != "" {
		why = fmt.Sprintf("process %d, which took it, is gone, and its number is that of %s", holder.PID, name)
	}
	if why == "" {
		return nil
	}
	c.note("the run %s: removed its run.lock: %s", r.dir, why)
	return disk.Remove(r.cliLockPath())
}

// readCLILock reads run.lock, which has three members.
func (r run) readCLILock() ([]byte, error) { return disk.ReadFile(r.cliLockPath(), 64<<10) }

func readLock(content []byte) (cliLock, bool) {
	var lock cliLock
	return lock, json.Unmarshal(content, &lock) == nil && lock.PID > 0
}

// unchanged reports whether run.lock is still the same file with the same content after a
// while, measured by the monotonic clock.
func (r run) unchanged(ctx context.Context, content []byte) (bool, error) {
	before, err := os.Lstat(r.cliLockPath())
	if err != nil {
		return false, ignoreMissing(err)
	}
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-time.After(unwritten):
	}
	after, err := os.Lstat(r.cliLockPath())
	if err != nil {
		return false, ignoreMissing(err)
	}
	latest, err := r.readCLILock()
	if err != nil {
		return false, ignoreMissing(err)
	}
	return os.SameFile(before, after) && before.ModTime().Equal(after.ModTime()) && bytes.Equal(content, latest), nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// otherProgram is the name of the program that runs as this process if that program cannot
// run the CLI; empty if it can, or if nothing is known of it.
func otherProgram(pid int) string {
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	name := strings.TrimSpace(string(comm))
	if err != nil || runtimes().MatchString(name) {
		return ""
	}
	return name
}

// runtimes are the names under which JavaScript runs; later versions of node call their
// main thread MainThread.
var runtimes = lazily(`node|MainThread|bun|deno|babysitter`)

// gone reports that no process has this number.
func gone(pid int) bool { return unix.Kill(pid, 0) == unix.ESRCH }

// unreadableLock reports whether the CLI's lock is not valid. The CLI then only says that
// something is not JSON.
func (r run) unreadableLock() bool {
	content, err := r.readCLILock()
	_, ok := readLock(content)
	return err == nil && !ok
}

// heldBy is the live process that holds the CLI's lock; 0 if there is none.
func (r run) heldBy() int {
	content, err := r.readCLILock()
	if err != nil {
		return 0
	}
	if holder, ok := readLock(content); ok && !gone(holder.PID) {
		return holder.PID
	}
	return 0
}
