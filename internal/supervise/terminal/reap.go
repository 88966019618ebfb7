package terminal

import (
	"syscall"

	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
)

// death is the end of a process of the session.
type death struct {
	leader bool // it was the command
	status syscall.WaitStatus
	alone  bool // no child is left
}

// reap returns when no child is left or the session is over, since a stranger may run on. It
// reports the command's death together with whether it was the last.
func (s *session) reap(leader int) {
	var last death
	died, gone := false, false
	guardian.Reap(s.children, s.done, func(pid int, status syscall.WaitStatus) {
		if pid == leader {
			last, gone = death{leader: true, status: status}, true
		}
		s.guardPID.CompareAndSwap(int64(pid), 0)
		died = true
	}, func(none bool) bool {
		last.alone = none || gone && s.guardedOnly()
		if died || last.alone {
			s.tell(last)
		}
		goOn := !last.alone
		last, died = death{}, false
		return goOn
	})
}

func (s *session) tell(d death) {
	select {
	case s.deaths <- d:
	case <-s.done:
	}
}

// left are the living processes of the session.
func (s *session) left() []machine.Entry {
	return guardian.Family(s.leader, func(pid int) bool { return s.strangers[pid] })
}

// kin are the children that this process already has, as after a shell script's exec, with
// their descendants: they do not belong to the session.
func kin() (strangers map[int]bool) {
	strangers = map[int]bool{}
	if !hasChildren() {
		return strangers
	}
	for _, p := range guardian.Family(0, func(int) bool { return false }) {
		strangers[p.PID] = true
	}
	return strangers
}
