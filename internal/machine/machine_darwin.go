package machine

import (
	"encoding/binary"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil || id == "" {
		return unreadBoot()
	}
	return id
}

// SinceBoot is a clock in nanoseconds that is never set back. Compare its values only within one boot.
func SinceBoot() int64 { return clock(unix.CLOCK_MONOTONIC) }

// Awake is SinceBoot without the time that the machine slept.
func Awake() int64 { return clock(unix.CLOCK_UPTIME_RAW) }

// stopped and zombie are SSTOP and SZOMB of sys/proc.h.
const stopped, zombie = 4, 5

// List returns all visible processes except zombies.
func List() (all []Entry) {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	for _, p := range list {
		if p.Proc.P_stat != zombie {
			all = append(all, entryOf(&p))
		}
	}
	return all
}

func entryOf(p *unix.KinfoProc) Entry {
	start := p.Proc.P_starttime
	return Entry{int(p.Proc.P_pid), int(p.Eproc.Ppid), int(p.Eproc.Pgid), start.Sec*1e6 + int64(start.Usec)}
}

// entry returns one process. ok is false if it has ended.
func entry(pid int) (e Entry, ok bool) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return e, false
	}
	return entryOf(p), true
}

// unreadable returns false: asking needs no descriptor.
func unreadable(int) bool { return false }

// Stopped reports whether a signal has stopped the process.
func Stopped(pid int) bool {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && p.Proc.P_stat == stopped
}

// Name returns what the process calls itself, at most 16 bytes, "" if it has ended.
func Name(pid int) string {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	return unix.ByteSliceToString(p.Proc.P_comm[:])
}

// WorkingDir returns "": macOS does not show it.
func WorkingDir(int) string { return "" }

// WatchProcess follows the process until it is gone.
func WatchProcess(pid int) *Process { return pollProcess(pid) }

// StartsPerSecond is the number of [ProcessStart] units per second.
const StartsPerSecond = 1_000_000

// Arguments returns the arguments that the process was started with (kern.procargs2), nil if unreadable.
func Arguments(pid int) []string {
	args, _ := startedWith(pid)
	return args
}

// Environ returns the environment that the process was started with, nil if unreadable.
func Environ(pid int) []string {
	_, environ := startedWith(pid)
	return environ
}

func startedWith(pid int) (args, environ []string) {
	b, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(b) < 4 {
		return nil, nil
	}
	argc := int(binary.LittleEndian.Uint32(b))
	words := slices.DeleteFunc(strings.Split(string(b[4:]), "\x00"), func(w string) bool { return w == "" })
	if len(words) < 1+argc { // the first is the program's file
		return nil, nil
	}
	return words[1 : 1+argc], words[1+argc:]
}

// PIDNamespace is empty: macOS has only one.
func PIDNamespace() string { return "" }

func severalBoots() bool { return false }

// LockHolder returns 0: macOS does not show who holds a lock.
func LockHolder(string) int { return 0 }

// HasOpen returns true: macOS does not show a process's open files.
func HasOpen(int, string) (open, known bool) { return true, false }
