package babysitter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
)

// lockName is the file whose advisory lock (flock(2)) admits one heartbeat at a time to write to a run. The CLI
// ignores the file, which stays. It is at the top of the run: a folder that the CLI makes anew, such as journal/, would
// take the lock along.
const lockName = ".heartbeat-lock"

// lock waits for other heartbeats that write to the run. After wait the error matches [ErrLocked].
func (r run) lock(ctx context.Context, wait time.Duration) (*disk.Lock, error) {
	lock, err := disk.AcquireLock(ctx, filepath.Join(r.dir, lockName), max(wait, 1))
	switch {
	case errors.Is(err, disk.ErrLocked):
		who := "another heartbeat"
		if pid := machine.LockHolder(filepath.Join(r.dir, lockName)); pid > 0 {
			who = fmt.Sprintf("process %d", pid)
		}
		return nil, fault(ErrLocked, "work on the run %s: %s does so: wait for it, or end it", r.dir, who)
	case err != nil:
		return nil, fmt.Errorf("work on the run %s: its folder must be writable for this user: %w", r.dir, err)
	}
	return lock, nil
}

// retryPause is the pause before the CLI is called again after it did not get the run's lock.
const retryPause = 250 * time.Millisecond

// underLock calls write under heartbeat's lock of a run, once it has removed what killed writers left.
func (c *CLI) underLock(ctx context.Context, r run, write func() error) (err error) {
	lock, err := r.lock(ctx, c.wait())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := r.finishRepair(c); err != nil {
		return err
	}
	return c.retryLocked(ctx, r, write)
}

// retryLocked repeats write while other processes hold the CLI's own lock. The CLI waits ten seconds for that lock, but
// not if it loses a race, or if the lock cannot be read.
func (c *CLI) retryLocked(ctx context.Context, r run, write func() error) error {
	for deadline := time.Now().Add(c.wait()); ; {
		if err := errors.Join(r.clearLock(c), r.sweepJournal(c)); err != nil {
			return err
		}
		err := write()
		if err == nil {
			return nil
		}
		// About an invalid lock the CLI reports only that something is not JSON.
		if holder, unread := r.cliHolder(); !errors.Is(err, ErrLocked) && (unread != nil || holder != 0) {
			return err
		}
		switch late := !time.Now().Before(deadline); {
		case late && !errors.Is(err, ErrLocked): // nobody holds it
			return fmt.Errorf("%w; and its run.lock stays unwritten: is the disk full?", err)
		case late:
			return fault(ErrLocked, "%w, also after %v: wait for it, or end it", err, c.wait())
		}
		select {
		case <-ctx.Done():
			return givenUp(ctx, "work on the run "+r.dir)
		case <-time.After(retryPause):
		}
	}
}

var unfinished = lazily(`^\d+\..*\.json\.tmp-(\d+)-\d+$`)

// sweepJournal removes the temporary files of killed writers. The CLI would count them when it numbers the next event,
// and later take the gap in the numbers for damage.
func (r run) sweepJournal(c *CLI) error {
	entries, err := os.ReadDir(r.journal())
	if err != nil {
		return nil // the CLI will report what is wrong with it
	}
	for _, entry := range entries {
		m := unfinished().FindStringSubmatch(entry.Name())
		if m == nil {
			continue
		}
		path := filepath.Join(r.journal(), entry.Name())
		// A write takes milliseconds.
		if pid, err := strconv.Atoi(m[1]); err != nil || !gone(pid) && otherProgram(pid) == "" && !isAged(path, time.Minute) {
			continue
		}
		c.note("the run %s: removed journal/%s, which a killed writer left", r.dir, entry.Name())
		if err := disk.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// unwritten is how long the CLI's lock may be empty. The CLI makes and fills it in two steps, milliseconds apart.
const unwritten = 2 * time.Second

func (r run) cliLockPath() string { return filepath.Join(r.dir, "run.lock") }

// clearLock removes an orphaned lock that the CLI would never remove: one left invalid by a full disk or a power loss,
// with which every command fails, or one whose process number now belongs to another program. The CLI itself removes
// the lock of a process that has ended.
func (r run) clearLock(c *CLI) error {
	pid, err := r.cliHolder()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("work on the run %s: its run.lock, which the CLI would wait for: %w", r.dir, err)
	}
	why := ""
	if pid == 0 && isAged(r.cliLockPath(), unwritten) {
		why = "nothing in it says whose it is"
	} else if name := otherProgram(pid); pid > 0 && name != "" {
		why = fmt.Sprintf("process %d, which took it, is gone, and its number is that of %s", pid, name)
	}
	if why == "" {
		return nil
	}
	c.note("the run %s: removed its run.lock: %s", r.dir, why)
	return disk.Remove(r.cliLockPath())
}

// isAged reports whether a file was written over age ago, or as far in the future, after the clock was set back.
func isAged(path string, age time.Duration) bool {
	info, err := disk.StatName(path)
	return err == nil && time.Since(time.Unix(0, info.Mtime)).Abs() > age
}

// cliHolder returns the process that the CLI's lock names, or 0 if the lock is not valid.
func (r run) cliHolder() (int, error) {
	content, err := disk.ReadFile(r.cliLockPath(), 64<<10) // it has three members
	var lock struct{ PID int }
	if err != nil || json.Unmarshal(content, &lock) != nil {
		return 0, err
	}
	return max(lock.PID, 0), nil
}

// otherProgram returns the name of the program that runs as this process, or "" if that program may run the CLI or is
// not known.
func otherProgram(pid int) string {
	name := machine.Name(pid)
	if runtimes().MatchString(name) {
		return ""
	}
	return name
}

// runtimes are the names under which JavaScript runs. Later versions of node call their main thread MainThread.
var runtimes = lazily(`node|MainThread|bun|deno|babysitter`)

func gone(pid int) bool { return unix.Kill(pid, 0) == unix.ESRCH }
