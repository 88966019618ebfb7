package terminal

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

const (
	// sweepEvery is how often those are looked for who were born while the others
	// were killed, and sweepFor how long at the most: the kernel may hold a process
	// back.
	sweepEvery = 10 * time.Millisecond
	sweepFor   = 2 * time.Second
)

// ending is how far a session is on its way to its end.
type ending struct {
	outcome  Outcome
	stopping bool // asked to end, or the command has ended and others live
	killing  bool
	gone     bool // the command has
	alone    bool // this process has no child left
	over     bool // nobody is left
	told     map[int]bool
	timeout  *time.Timer
	grace    *time.Timer
	later    *time.Timer // when to ask again whether it may end
	sweep    *time.Timer
	killedAt time.Duration
}

// stop asks the command's process group to end. What it leaves behind is asked
// when it has, so that it can end its own in order.
func (s *session) stop(why Outcome) {
	if s.stopping {
		return // the first reason counts
	}
	why.Status = s.outcome.Status
	s.outcome = why
	s.beginGrace()
	// A process that is stopped gets the signal once it goes on.
	_ = syscall.Kill(-s.leader, syscall.SIGTERM) // it may just have ended
	_ = syscall.Kill(-s.leader, syscall.SIGCONT)
}

func (s *session) beginGrace() {
	s.stopping, s.told = true, map[int]bool{}
	s.grace = time.NewTimer(s.Grace)
}

// bury takes note of a death. The last one ends the session.
func (s *session) bury(d death) {
	if d.leader {
		s.gone, s.outcome.Status = true, d.status
	}
	s.alone = s.alone || d.alone
	switch {
	case s.alone && orphansFall:
		s.over = true
	case s.gone:
		if !s.stopping {
			s.beginGrace()
		}
		s.press()
		if s.alone && s.sweep == nil {
			s.sweep = time.NewTimer(sweepEvery) // nobody tells of the others' deaths
		}
	}
}

// press has everybody who is left end, and reports who that is.
func (s *session) press() []int {
	left := family(s.leader, s.strangers)
	// Who has just died is still to be waited for, unless strangers live on.
	s.over = s.gone && len(left) == 0 && (s.alone || s.crowded)
	for _, pid := range left {
		switch {
		case s.killing:
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may just have ended
		case !s.told[pid]:
			s.told[pid] = true
			_ = syscall.Kill(pid, syscall.SIGTERM)
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	return left
}

// kill ends everybody at once.
func (s *session) kill() {
	if s.killing {
		return
	}
	s.killing, s.killedAt = true, s.now()
	if !s.gone {
		_ = syscall.Kill(-s.leader, syscall.SIGKILL) // also where processes cannot be listed
	}
	s.press()
	if s.sweep == nil {
		s.sweep = time.NewTimer(sweepEvery)
	}
}

func (s *session) sweepUp() {
	left := s.press()
	s.sweep.Reset(sweepEvery)
	if !s.killing || s.now()-s.killedAt < sweepFor {
		return
	}
	if !s.over {
		s.Note("what the command left behind cannot be killed (%s): end it by hand", list(left))
	}
	s.over = true
}

func list(pids []int) string {
	if len(pids) == 0 {
		return "it cannot be listed either"
	}
	return "process " + strings.Trim(fmt.Sprint(pids), "[]")
}

// abandon leaves nobody behind whatever happened. After an orderly end there is
// nobody.
func (s *session) abandon() {
	if s.over {
		return
	}
	if !s.gone {
		_ = syscall.Kill(-s.leader, syscall.SIGKILL)
	}
	s.killing = true
	s.press()
	for limit := time.After(sweepFor); !s.over; {
		select {
		case d := <-s.deaths:
			s.bury(d)
		case <-limit:
			return
		}
	}
}
