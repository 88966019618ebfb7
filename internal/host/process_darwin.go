package host

import (
	"encoding/binary"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// WatchProcess follows a process until it is gone.
func WatchProcess(pid int) *Process { return pollProcess(pid) }

// ProcessStart is when a process started, in microseconds since 1970, or 0 if there
// is no such process. Together with the pid it identifies the process for good.
func ProcessStart(pid int) int64 {
	if pid <= 0 {
		return 0
	}
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	start := p.Proc.P_starttime
	return start.Sec*1e6 + int64(start.Usec)
}

// StartsPerSecond is how many units of [ProcessStart] a second has.
const StartsPerSecond = 1_000_000

// Arguments are those that a process was started with (kern.procargs2), nothing where they
// cannot be read.
func Arguments(pid int) []string {
	args, _ := startedWith(pid)
	return args
}

// Environ is the environment that it was started with, or nothing.
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
