package terminal

import "syscall"

// death is the end of a process of the session.
type death struct {
	leader bool // it was the command
	status syscall.WaitStatus
	alone  bool // no child is left
}

// reap waits for every child, and for every orphan that falls to this process, so
// that none stays a zombie, until there is none. It blocks in the kernel. The
// command's own death is told together with whether it was the last.
func (s *session) reap(leader int) {
	var news death
	flags := 0
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, flags, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // nobody is left to wait for
			news.alone = true
			s.tell(news)
			return
		case pid == leader:
			news, flags = death{leader: true, status: status}, syscall.WNOHANG
		case pid == 0:
			s.tell(news)
			news, flags = death{}, 0
		case flags == 0:
			s.tell(death{})
		}
	}
}

func (s *session) tell(d death) {
	select {
	case s.deaths <- d:
	case <-s.done:
	}
}
