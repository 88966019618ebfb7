package guardian

import (
	"encoding/json"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/machine"
)

const (
	// searchEvery is the pause between two searches for survivors. The searches end after searchFor:
	// the kernel may keep a process from dying.
	searchEvery = 20 * time.Millisecond
	searchFor   = 10 * time.Second
	// searchesInVain is how many searches in a row must find nothing: during execve a process has no
	// environment for a moment.
	searchesInVain = 5
	// freezes bounds the searches for processes started while others were being stopped.
	freezes = 50
)

func guard(mark string) {
	_ = os.WriteFile("/proc/self/comm", []byte("heartbeat-guard"), 0) // the name would be "exe" otherwise
	// The keeper may get these signals too and end later.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	closeInherited()
	for {
		n, err := syscall.Read(keeping, make([]byte, 1))
		if n <= 0 && err != syscall.EINTR {
			break
		}
	}
	restoreTerminal()
	if mark != "" {
		Kill(mark)
	}
	var paths []string
	_ = json.Unmarshal([]byte(os.Getenv(filesVariable)), &paths) // an error leaves no paths
	for _, path := range paths {
		_ = os.Remove(path) // as the keeper would; fails for one that is missing or is a directory with other files
	}
}

// filesVariable passes the guardian the paths to remove.
const filesVariable = "HEARTBEAT_GUARDED_FILES"

// Kill kills all processes that carry the mark, with their descendants, and keeps searching for
// more for a while. It returns how many it killed.
func Kill(mark string) (killed int) {
	end := time.Now().Add(searchFor)
	for vain := 0; vain < searchesInVain && time.Now().Before(end); vain++ {
		for _, p := range freeze(mark) {
			_ = Send(p, syscall.SIGKILL) // fails if it has just ended
			vain, killed = 0, killed+1
		}
		time.Sleep(searchEvery)
	}
	return killed
}

// closeInherited closes descriptors that the keeper inherited for its command, such as the lock of flock(1).
func closeInherited() {
	names, _ := os.ReadDir("/proc/self/fd") // /proc is there: this process was started through it
	for _, name := range names {
		fd, err := strconv.Atoi(name.Name())
		if err != nil || fd <= undoing {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd) // Go opens everything with FD_CLOEXEC, so it was inherited
		}
	}
}

// freeze stops all processes of a session until it finds no new ones. All must be stopped before any is
// killed: once a parent is dead, nothing shows that its unseen child belongs to the session.
func freeze(mark string) (all []machine.Entry) {
	stopped := map[machine.Entry]bool{}
	for range freezes {
		fresh := false
		all = Members(mark)
		for _, p := range all {
			p.Parent, p.Group = 0, 0 // these may change and are not part of the identity
			if !stopped[p] {
				stopped[p], fresh = true, true
				_ = Send(p, syscall.SIGSTOP)
			}
		}
		if !fresh {
			break
		}
	}
	return all
}

// Members returns the processes that carry the mark, and their descendants, except this process.
func Members(mark string) []machine.Entry {
	return below(func(p machine.Entry) bool {
		marks, _ := machine.Variable(p.PID, Variable) // unreadable in another user's process
		return marks != "" && slices.Contains(strings.Split(marks, ":"), mark)
	}, func(pid int) bool { return pid == os.Getpid() })
}

// DiesWithParent makes the kernel kill a program when the thread that started it ends (prctl(2),
// PR_SET_PDEATHSIG), since the guardian may be killed too. Lock that thread to its goroutine.
func DiesWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	attr.Pdeathsig = syscall.SIGKILL
	return attr
}

// Adopts says whether orphans become children of a process that called [Adopt]. Then without children
// no process is left.
const Adopts = true

// Adopt makes orphans of what this process starts its own children, so that it can find and reap
// them (prctl(2), PR_SET_CHILD_SUBREAPER).
func Adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } // cannot fail since Linux 3.4
