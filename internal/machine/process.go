package machine

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Entry is a process as [List] returns it. Start is that of [ProcessStart].
type Entry struct {
	PID, Parent, Group int
	Start              int64
}

// ProcessStart is when a process started, or 0 if there is no such process: in clock ticks
// since boot (proc(5), stat), or in microseconds since 1970 on macOS. Together with the pid
// and the boot it identifies the process for good.
func ProcessStart(pid int) int64 {
	if pid <= 0 {
		return 0
	}
	e, _ := entry(pid)
	return e.Start
}

// LockHolder is [Locks.Holder] now.
func LockHolder(path string) int { return ReadLocks().Holder(path) }

// Life is whether a process lives.
type Life int

// What is known about a process.
const (
	Unknown Life = iota
	Alive
	Gone
	Rebooted // gone, since the machine was rebooted
)

// String returns running, gone or unknown.
func (l Life) String() string {
	switch l {
	case Alive:
		return "running"
	case Gone, Rebooted:
		return "gone"
	}
	return "unknown"
}

// Ended reports whether it is certain that the process is gone.
func (l Life) Ended() bool { return l == Gone || l == Rebooted }

// LifeOf asks the kernel about the process that had this pid, start (see [ProcessStart]),
// boot and namespace. It is Unknown if the pid belongs to another namespace, or if pid or
// start was not recorded.
func LifeOf(boot, namespace string, pid int, start int64) Life {
	alive, known := Lives(boot, namespace, pid, start)
	switch {
	case alive:
		return Alive
	case !known:
		return Unknown
	case OtherBoot(boot):
		return Rebooted
	}
	return Gone
}

// Lives is [LifeOf] for those who need no more than whether the process runs.
func Lives(boot, namespace string, pid int, start int64) (alive, known bool) {
	switch {
	case OtherBoot(boot):
		return false, true
	case pid == 0 || start == 0 || namespace != PIDNamespace():
		return false, false
	}
	return ProcessStart(pid) == start, true
}

// mostParents bounds a chain of parents.
const mostParents = 64

// Nearest is a process, or the nearest one above it, that is what is looked for; 0 for none.
// A process whose parent has ended is below nobody any more.
func Nearest(pid int, is func(pid int) bool) int {
	for range mostParents {
		switch {
		case pid < 1:
			return 0
		case is(pid):
			return pid
		}
		e, _ := entry(pid)
		pid = e.Parent // 0 if it has ended
	}
	return 0
}

// Variable is a variable of the environment that a process was started with, "" if it has
// none. known is false if the system does not show it.
func Variable(pid int, name string) (value string, known bool) {
	if pid == os.Getpid() {
		return os.Getenv(name), true
	}
	environ := Environ(pid)
	for _, kv := range environ {
		if value, is := strings.CutPrefix(kv, name+"="); is {
			return value, true
		}
	}
	return "", len(environ) > 0
}

// Process is a process that is not a child of this one.
type Process struct {
	died chan struct{}
	gone func() bool
}

// Died is closed once the process is gone.
func (p *Process) Died() <-chan struct{} { return p.died }

// Gone asks the kernel right now. Died may be a moment late.
func (p *Process) Gone() bool { return p.gone() }

// pollProcess is for systems where only the parent can wait for a process.
func pollProcess(pid int) *Process {
	p := &Process{died: make(chan struct{}), gone: func() bool { return unix.Kill(pid, 0) == unix.ESRCH }}
	go func() {
		defer close(p.died)
		for !p.gone() {
			time.Sleep(time.Second)
		}
	}()
	return p
}
