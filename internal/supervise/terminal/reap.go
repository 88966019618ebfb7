package terminal

import (
	"os"
	"syscall"

	"heartbeat/internal/machine"
)

// death is the end of a process of the session.
type death struct {
	leader bool // it was the command
	status syscall.WaitStatus
	alone  bool // no child is left
}

// reap waits for all children and adopted orphans, so that none stays a zombie. It
// returns when none is left or the session is over, since a stranger may run on. It
// reports the command's death together with whether it was the last.
func (s *session) reap(leader int) {
	var last death
	for died, gone := false, false; ; {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil, pid == 0 && gone && s.guardedOnly():
			last.alone = true
			s.tell(last)
			return
		case pid == leader:
			last, died, gone = death{leader: true, status: status}, true, true
		case pid != 0:
			s.guardPID.CompareAndSwap(int64(pid), 0)
			died = true
		default:
			if died {
				s.tell(last)
				last, died = death{}, false
			}
			select {
			case <-s.children:
			case <-s.done:
				return
			}
		}
	}
}

func (s *session) tell(d death) {
	select {
	case s.deaths <- d:
	case <-s.done:
	}
}

// family lists the living processes of the session: the command's process group and
// all descendants of this process, except strangers and their descendants.
func family(leader int, strangers map[int]bool) (pids []int) {
	children := map[int][]int{}
	seen := map[int]bool{}
	var queue []int
	for _, p := range machine.List() {
		children[p.Parent] = append(children[p.Parent], p.PID)
		if leader != 0 && p.Group == leader {
			queue = append(queue, p.PID)
		}
	}
	queue = append(queue, children[os.Getpid()]...)
	for len(queue) > 0 {
		pid := queue[0]
		queue = queue[1:]
		if seen[pid] || strangers[pid] {
			continue
		}
		seen[pid] = true
		pids = append(pids, pid)
		queue = append(queue, children[pid]...)
	}
	return pids
}
