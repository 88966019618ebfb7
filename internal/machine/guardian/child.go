package guardian

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"

	"heartbeat/internal/machine"
)

// Start starts a program from a thread of its own, and calls wait there with its pid: as soon
// as wait returns, or this process is killed, the kernel kills the program. See [DiesWithParent].
func Start(path string, command []string, attr *syscall.ProcAttr, wait func(pid int)) (pid int, err error) {
	DiesWithParent(attr.Sys)
	started := make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with this goroutine
		pid, err = syscall.ForkExec(path, command, attr)
		child, failed := pid, err != nil // the caller's own from here on
		close(started)
		if !failed {
			wait(child)
		}
	}()
	<-started
	return pid, err
}

// Reap waits for all children of this process, also for those that it adopted, so that none
// stays a zombie. Children may have died whenever something comes from told. died gets each
// that has; after that rest is called, with whether no child is left, until it returns false
// or done is closed.
func Reap(told <-chan os.Signal, done <-chan struct{}, died func(pid int, status syscall.WaitStatus), rest func(none bool) (goOn bool)) {
	for {
		var status syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); {
		case err == syscall.EINTR:
			continue
		case err == nil && pid != 0:
			died(pid, status)
			continue
		case !rest(err != nil):
			return
		}
		select {
		case <-told:
		case <-done:
			return
		}
	}
}

// Family lists the living processes of a process group, 0 for none, and all descendants of
// this process, except strangers and their descendants.
func Family(leader int, strange func(pid int) bool) []machine.Entry {
	return below(func(p machine.Entry) bool { return leader != 0 && p.Group == leader || p.Parent == os.Getpid() }, strange)
}

// Ending ends what a leader started: its process group is asked, then each process that is left,
// and once that has taken too long all are killed. When that is, and who is left, the caller says.
type Ending struct {
	Leader  int  // a process, and its group
	Gone    bool // it has ended
	Killing bool // see [Ending.Kill]
	told    []int
}

// Ask asks the leader's group to end.
func (e *Ending) Ask() { _ = SignalGroup(e.Leader, syscall.SIGTERM) } // fails if it has just ended

// Kill kills the leader, and has [Ending.Press] kill from now on.
func (e *Ending) Kill() {
	e.Killing = true
	if !e.Gone {
		_ = SignalGroup(e.Leader, syscall.SIGKILL) // works even if processes cannot be listed
	}
}

// Press asks each of those who are left to end, once, or kills them.
func (e *Ending) Press(left []machine.Entry) {
	if e.Killing {
		Slay(left)
		return
	}
	for _, p := range left {
		if !slices.Contains(e.told, p.PID) {
			e.told = append(e.told, p.PID)
			_ = Send(p, syscall.SIGTERM) // fails if it has just ended
		}
	}
}

// Slay kills them, and returns how many they were.
func Slay(left []machine.Entry) int {
	for _, p := range left {
		_ = Send(p, syscall.SIGKILL) // fails if it has just ended
	}
	return len(left)
}

// below lists the living processes that begins holds for, with their descendants, except
// strangers and theirs.
func below(begins func(machine.Entry) bool, strange func(pid int) bool) (found []machine.Entry) {
	children := map[int][]machine.Entry{}
	var queue []machine.Entry
	for _, p := range machine.List() {
		children[p.Parent] = append(children[p.Parent], p)
		if begins(p) {
			queue = append(queue, p)
		}
	}
	seen := map[int]bool{}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		if !seen[p.PID] && !strange(p.PID) {
			seen[p.PID] = true
			found = append(found, p)
			queue = append(queue, children[p.PID]...)
		}
	}
	return found
}

// WhyNot words the kernel's error about a program that was found and could not be started in
// dir. It matches [machine.Passes] where that may be over by the next try.
func WhyNot(err error, dir string) error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return errors.New("it is neither a program of this system nor a script with #! in its first line")
	case errors.Is(err, syscall.ENOENT):
		return errors.New("it, what would run it (its first line or its loader), or the folder " + dir + " is not there")
	case errors.Is(err, syscall.E2BIG):
		return errors.New("its arguments and environment are too long for the system")
	case machine.Passes(err):
		return fmt.Errorf("%w: the system has no room for it now", err)
	}
	return err
}
