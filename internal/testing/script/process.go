package script

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Watches reports whether a process has an inotify watch.
func Watches(pid int) bool {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	for _, fd := range fds {
		if b, _ := os.ReadFile(fd); bytes.Contains(b, []byte("inotify wd:")) {
			return true
		}
	}
	return false
}

// CPUTime is the user and system time that a running process has used so far, including
// threads that have ended. It reads the process's own clock, whose id contains the pid
// (clock_getcpuclockid(3)): /proc counts in hundredths of a second, which is more than
// a waiting process uses.
func CPUTime(pid int) (time.Duration, error) {
	const schedulerClock = 2 // CPUCLOCK_SCHED of the whole process
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|schedulerClock, &t); err != nil {
		return 0, fmt.Errorf("read the CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// Memory is what a process has in memory, in bytes, by a word of /proc/PID/status or
// /proc/PID/smaps_rollup (proc(5)).
func Memory(pid int, word string) (int64, error) {
	for _, file := range []string{"status", "smaps_rollup"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil {
			return 0, err
		}
		_, rest, found := strings.Cut(string(text), "\n"+word+":")
		var kb int64
		if _, err := fmt.Sscan(rest, &kb); found && err == nil {
			return kb << 10, nil
		}
	}
	return 0, fmt.Errorf("process %d does not show its %s", pid, word)
}

// Marked are the processes but this one that have a variable in their environment, as
// NAME=VALUE.
func Marked(variable string) (all []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well-formed
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if raw, readErr := os.ReadFile(path); errors.Join(err, readErr) == nil && pid != os.Getpid() &&
			bytes.Contains(append([]byte{0}, raw...), []byte("\x00"+variable+"\x00")) {
			all = append(all, pid)
		}
	}
	return all
}

// KillMarked kills a process if it has the variable. It takes a handle on it before it
// looks, so that an id that changes hands in between cannot hit a stranger.
func KillMarked(pid int, variable string) {
	process, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	if slices.Contains(Marked(variable), pid) {
		_ = process.Kill() // it may have ended just now
	}
	_ = process.Release() // it is of no use any more
}

// Sweep kills all that has the variable, and waits until it is gone. Hooks and shells run
// in sessions of their own, out of reach of a group's kill, but they have the environment
// of whoever started them.
func Sweep(t testing.TB, variable string) {
	for end := time.Now().Add(Patience); ; time.Sleep(3 * time.Millisecond) {
		left := Marked(variable)
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("processes with %s do not end: %v", variable, left)
			return
		}
		for _, pid := range left {
			KillMarked(pid, variable)
		}
	}
}
