package machine

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Entry is a process in [List]. Start is its [ProcessStart].
type Entry struct {
	PID, Parent, Group int
	Start              int64
}

// ProcessStart returns when the process started, 0 if there is none: in clock ticks since boot (proc(5),
// stat), or on macOS in microseconds since 1970. With the pid and the boot it is unique.
func ProcessStart(pid int) int64 {
	if pid <= 0 {
		return 0
	}
	e, _ := entry(pid)
	return e.Start
}

// ProgramOf returns the program behind the name of a process or a file. A downloaded release has its platform in its
// name, such as codex-x86_64-unknown-linux-musl, and the name of a process is cut to 15 bytes.
func ProgramOf(name string) string {
	name, _, _ = strings.Cut(name, "-x86_64")
	name, _, _ = strings.Cut(name, "-aarch64")
	return name
}

func clock(id int32) int64 {
	var ts unix.Timespec
	if unix.ClockGettime(id, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// Life is whether a process lives.
type Life int

const (
	Unknown Life = iota
	Alive
	Gone
	Rebooted // gone, because the machine was rebooted
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

// Ended reports whether the process is certainly gone.
func (l Life) Ended() bool { return l == Gone || l == Rebooted }

// LifeOf asks the kernel about the process with this pid, start (see [ProcessStart]), boot and
// namespace. It is Unknown for a pid of another namespace, or if pid or start was not recorded.
func LifeOf(boot, namespace string, pid int, start int64) Life {
	known := pid != 0 && start != 0 && namespace == PIDNamespace()
	switch {
	case OtherBoot(boot) && !(known && ProcessStart(pid) == start && severalBoots()):
		return Rebooted
	case !known:
		return Unknown
	}
	if now := ProcessStart(pid); now == start || now == 0 && hidden(pid) {
		return Alive
	}
	return Gone
}

// Ended reports whether no process with this pid runs. Where the kernel cannot be asked, as without a free
// descriptor, it reports false: a process that may live must not be taken for dead.
func Ended(pid int) bool { return pid <= 0 || ProcessStart(pid) == 0 && !hidden(pid) }

// hidden reports whether a process with this pid may run whose start cannot be read.
func hidden(pid int) bool { return unix.Kill(pid, 0) != unix.ESRCH && unreadable(pid) }

// mostParents bounds a chain of parents.
const mostParents = 64

// Nearest returns the pid of the process or of its nearest ancestor for which is returns true, 0 for
// none. The chain stops at a process whose parent has ended.
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

// Variable returns a variable of the environment that the process was started with, "" if unset.
// known is false if the system does not show the environment.
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

// Process is a watched process that is not a child of this one.
type Process struct {
	died chan struct{}
	gone func() bool
}

// Died is closed once the process is gone.
func (p *Process) Died() <-chan struct{} { return p.died }

// Gone asks the kernel now. Died may be a moment late.
func (p *Process) Gone() bool { return p.gone() }

// pollProcess watches a process where only its parent can wait for it, or if it is gone.
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
