package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const canSeeWaiting = true

// notWaiting is the state of a process that is not waiting.
const notWaiting = ""

// waitState recognises a hook that waits for its inbox to change: it has a watch
// (proc(5), fdinfo), no file of the inbox open, and all its threads sleep. The state
// contains how often they were scheduled, so it is the same again only if none has run
// since.
func waitState(pid int) string {
	proc := fmt.Sprintf("/proc/%d", pid)
	if !watches(proc) {
		return notWaiting
	}
	threads, err := filepath.Glob(proc + "/task/*/status")
	if err != nil || len(threads) == 0 {
		return notWaiting
	}
	var state strings.Builder
	for _, t := range threads {
		status, err := os.ReadFile(t)
		if err != nil || !strings.Contains(string(status), "\nState:\tS") {
			return notWaiting
		}
		fmt.Fprintln(&state, t)
		for line := range strings.Lines(string(status)) {
			if strings.Contains(line, "ctxt_switches") {
				state.WriteString(line)
			}
		}
	}
	return state.String()
}

func watches(proc string) bool {
	fds, err := os.ReadDir(proc + "/fd")
	if err != nil {
		return false
	}
	watch := false
	for _, fd := range fds {
		target, err := os.Readlink(filepath.Join(proc, "fd", fd.Name()))
		if err != nil || strings.Contains(target, "/.inbox-") {
			return false
		}
		if target == "anon_inode:inotify" {
			info, err := os.ReadFile(filepath.Join(proc, "fdinfo", fd.Name()))
			watch = err == nil && strings.Contains(string(info), "inotify wd:")
		}
	}
	return watch
}

// cpuTime is the user and system time that a running process has used so far, including
// threads that have ended. It reads the process's own clock, whose id contains the pid
// (clock_getcpuclockid(3)): /proc counts in hundredths of a second, which is more than
// a waiting process uses.
func cpuTime(pid int) (time.Duration, error) {
	const schedulerClock = 2 // CPUCLOCK_SCHED of the whole process
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|schedulerClock, &t); err != nil {
		return 0, fmt.Errorf("read the CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}
