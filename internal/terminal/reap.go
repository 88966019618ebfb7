package terminal

import (
	"os"
	"syscall"
)

// death is the end of a process of the session.
type death struct {
	leader bool // it was the command
	status syscall.WaitStatus
	alone  bool // no child is left
}

// reap waits for every child, and for every orphan that falls to this process, so
// that none stays a zombie, until there is none or the session is over: a child
// that is a stranger to it may live on. The command's own death is told together
// with whether it was the last.
func (s *session) reap(leader int, news <-chan os.Signal) {
	var last death
	for died := false; ; {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // nobody is left to wait for
			last.alone = true
			s.tell(last)
			return
		case pid == leader:
			last, died = death{leader: true, status: status}, true
		case pid != 0:
			died = true
		default:
			if died {
				s.tell(last)
				last, died = death{}, false
			}
			select {
			case <-news:
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
