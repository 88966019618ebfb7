package host

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// WatchProcess follows a process until it is gone. It uses pidfd_open(2), so that
// another process that gets the pid later is not mistaken for it.
func WatchProcess(pid int) *Process {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil && err != unix.ESRCH {
		return pollProcess(pid)
	}
	p := &Process{died: make(chan struct{}), gone: func() bool { return err != nil || ended(fd, 0) }}
	go func() {
		defer close(p.died)
		for !p.gone() && !ended(fd, -1) {
		}
	}()
	return p
}

// ended waits at most wait milliseconds for the process to end, or for ever if wait
// is -1.
func ended(fd, wait int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, wait)
	return err == nil && n > 0
}

// ProcessStart is when a process started, in clock ticks since boot (proc(5),
// stat), or 0 if there is no such process. Together with the pid and the boot it
// identifies the process for good.
func ProcessStart(pid int) int64 {
	if pid <= 0 {
		return 0
	}
	e, _ := entry(pid)
	return e.Start
}

// StartsPerSecond is how many units of [ProcessStart] a second has.
const StartsPerSecond = 100

// Arguments are those that a process was started with (proc(5), cmdline), nothing where they
// cannot be read.
func Arguments(pid int) []string { return wordsOf(pid, "cmdline") }

// Environ is the environment that it was started with, or nothing.
func Environ(pid int) []string { return wordsOf(pid, "environ") }

func wordsOf(pid int, name string) []string {
	// Plain system calls: see entry.
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var all []byte
	for part := make([]byte, 4<<10); len(all) < maxWords; {
		n, err := unix.Read(fd, part)
		if n <= 0 || err != nil {
			break
		}
		all = append(all, part[:n]...)
	}
	if len(all) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(all), "\x00"), "\x00")
}

// maxWords bounds what is read of a process's arguments or environment.
const maxWords = 4 << 20

// PIDNamespace identifies the namespace in which this process's pids are valid
// (pid_namespaces(7)). It is empty if the system does not say.
func PIDNamespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}
