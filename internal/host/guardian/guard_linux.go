package guardian

import (
	"bytes"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/host"
)

const (
	// lookEvery is the pause between two looks for who is left, and lookFor how long
	// there are any: the kernel may hold a process back.
	lookEvery = 20 * time.Millisecond
	lookFor   = 10 * time.Second
	// looksInVain end it: a process that is just being replaced by another program
	// has no environment for a moment.
	looksInVain = 5
	// freezes bounds how often those are looked for who were born while the others
	// were stopped.
	freezes = 50
)

// guard is the life of a guardian.
func guard(mark string) {
	_ = os.WriteFile("/proc/self/comm", []byte("heartbeat-guard"), 0) // it is called exe otherwise
	// The keeper may end by these and take its time about it.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	letGo()
	for {
		n, err := syscall.Read(keeping, make([]byte, 1))
		if n <= 0 && err != syscall.EINTR {
			break
		}
	}
	restoreTerminal()
	end := time.Now().Add(lookFor)
	for vain := 0; vain < looksInVain && time.Now().Before(end); vain++ {
		if found := freeze(mark); len(found) > 0 {
			vain = 0
			for _, p := range found {
				send(p, syscall.SIGKILL)
			}
		}
		time.Sleep(lookEvery)
	}
}

// letGo closes what the keeper was given to pass on to its command, such as the
// lock of flock(1).
func letGo() {
	names, _ := os.ReadDir("/proc/self/fd") // it was there for the start
	for _, name := range names {
		fd, err := strconv.Atoi(name.Name())
		if err != nil || fd <= keeping {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd) // it was not opened here
		}
	}
}

// freeze stops all of a session, until no other one is found: who is killed while
// a child of his is not seen yet takes with him the word of whose child it is.
func freeze(mark string) (all []host.Entry) {
	stopped := map[host.Entry]bool{}
	for range freezes {
		fresh := false
		all = members(mark)
		for _, p := range all {
			p.Parent, p.Group = 0, 0 // these may change
			if !stopped[p] {
				stopped[p], fresh = true, true
				send(p, syscall.SIGSTOP)
			}
		}
		if !fresh {
			break
		}
	}
	return all
}

// members are those with the mark, and their descendants.
func members(mark string) (found []host.Entry) {
	children := map[int][]host.Entry{}
	var queue []host.Entry
	for _, p := range host.List() {
		children[p.Parent] = append(children[p.Parent], p)
		if isMarked(p.PID, mark) {
			queue = append(queue, p)
		}
	}
	seen := map[int]bool{os.Getpid(): true}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		if !seen[p.PID] {
			seen[p.PID] = true
			found = append(found, p)
			queue = append(queue, children[p.PID]...)
		}
	}
	return found
}

// isMarked looks at the environment that a process was started with. One that is
// not shown belongs to somebody else.
func isMarked(pid int, mark string) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || !bytes.Contains(environ, []byte(mark)) {
		return false
	}
	for kv := range bytes.SplitSeq(environ, []byte{0}) {
		if marks, found := bytes.CutPrefix(kv, []byte(Variable+"=")); found {
			for m := range bytes.SplitSeq(marks, []byte(":")) {
				if string(m) == mark {
					return true
				}
			}
		}
	}
	return false
}

// send signals this very process, and not another that has its number by now.
func send(p host.Entry, sig syscall.Signal) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	switch {
	case err == unix.ENOSYS: // before Linux 5.3
		if host.ProcessStart(p.PID) == p.Start {
			_ = unix.Kill(p.PID, sig) // it may just have ended
		}
		return
	case err != nil:
		return
	}
	defer unix.Close(fd)
	if host.ProcessStart(p.PID) == p.Start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0) // likewise
	}
}
