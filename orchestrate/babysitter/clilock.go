package babysitter

import (
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

// unwritten is how long the CLI's lock may be empty. The CLI makes and fills it in two steps, milliseconds apart.
const unwritten = 2 * time.Second

func (r run) cliLockPath() string { return filepath.Join(r.dir, "run.lock") }

// clearLock removes an orphaned lock that the CLI would never remove. The lock may be unreadable after a full disk
// or a power loss, which fails every command. Or its process number now belongs to another program. The CLI itself
// removes the lock of a process that has ended.
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

// isAged reports whether a file was written that long ago, or as far in the future: then the clock was set back.
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

// otherProgram returns the name of the program that runs as this process, if that program cannot run the CLI. It is
// "" if the program can, or if nothing is known of it.
func otherProgram(pid int) string {
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	name := strings.TrimSpace(string(comm))
	if err != nil || runtimes().MatchString(name) {
		return ""
	}
	return name
}

// runtimes are the names under which JavaScript runs. Later versions of node call their main thread MainThread.
var runtimes = lazily(`node|MainThread|bun|deno|babysitter`)

// gone reports that no process has this number.
func gone(pid int) bool { return unix.Kill(pid, 0) == unix.ESRCH }
