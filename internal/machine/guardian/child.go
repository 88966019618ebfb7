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

// Start starts a program from its own thread and calls wait there with the program's pid. When wait
// returns, or this process is killed, the kernel kills the program. See [DiesWithParent].
func Start(path string, command []string, attr *syscall.ProcAttr, wait func(pid int)) (pid int, err error) {
	DiesWithParent(attr.Sys)
	started := make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with this goroutine
		pid, err = syscall.ForkExec(path, command, attr)
		child, failed := pid, err != nil // from here on the caller owns the results
		close(started)
		if !failed {
			wait(child)
		}
	}()
	<-started
	return pid, err
}

// Reap reaps all children of this process, adopted ones too. A value from deaths means that children may have died.
// Reap calls died for each dead child, and after each pass rest, with whether no child is left, until rest returns
// false or done is closed.
func Reap(deaths <-chan os.Signal, done <-chan struct{}, died func(pid int, status syscall.WaitStatus), rest func(none bool) (goOn bool)) {
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
		case <-deaths:
		case <-done:
			return
		}
	}
}

// Family lists the living processes of the leader's process group (0 for none) and all descendants
// of this process, except strangers and their descendants.
func Family(leader int, strange func(pid int) bool) []machine.Entry {
	return below(func(p machine.Entry) bool { return leader != 0 && p.Group == leader || p.Parent == os.Getpid() }, strange)
}

// Ending ends what a leader started: it asks the process group, then each remaining process, and at last kills
// them all. The caller decides when, and lists what is left.
type Ending struct {
	Leader  int  // a process and its group
	Gone    bool // the leader has ended
	Killing bool // see [Ending.Kill]
	asked   []int
}

// Ask asks the leader's group to end.
func (e *Ending) Ask() { _ = SignalGroup(e.Leader, syscall.SIGTERM) } // fails if it has just ended

// Kill kills the leader, and makes [Ending.Press] kill from now on.
func (e *Ending) Kill() {
	e.Killing = true
	if !e.Gone {
		_ = SignalGroup(e.Leader, syscall.SIGKILL) // works even if processes cannot be listed
	}
}

// Press asks each remaining process once to end, or kills all.
func (e *Ending) Press(left []machine.Entry) {
	if e.Killing {
		Slay(left)
		return
	}
	for _, p := range left {
		if !slices.Contains(e.asked, p.PID) {
			e.asked = append(e.asked, p.PID)
			_ = Send(p, syscall.SIGTERM) // fails if it has just ended
		}
	}
}

// Slay kills the processes and returns their number.
func Slay(left []machine.Entry) int {
	for _, p := range left {
		_ = Send(p, syscall.SIGKILL) // fails if it has just ended
	}
	return len(left)
}

// below lists the living processes for which begins returns true, with their descendants, except strangers
// and the strangers' descendants.
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

// WhyNot explains the kernel's error about an existing program that could not be started in dir.
// The result matches [machine.Passes] if the next try may work.
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
