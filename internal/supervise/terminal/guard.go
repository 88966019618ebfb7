package terminal

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
)

// guardAfter is how long a command runs before its guardian is started, so that the guardian delays
// no start and costs short commands nothing.
const guardAfter = 5 * time.Millisecond

// mark puts a unique mark into the environment of the whole session.
func (s *session) mark() (err error) {
	if !s.Guard || !guardian.Adopts {
		return nil
	}
	if s.marked, err = machine.RandomName(); err == nil {
		s.Env = guardian.Marked(s.Env, s.marked)
	}
	return err
}

// post starts the guardian. Until guardPID is set, reap may take it for a process of the session.
func (s *session) post() {
	found := s.caller.found
	if found == nil && s.shows() { // nobody types there
		found, _ = guardian.TerminalOf(s.Console.to) // if it fails, nobody undoes its modes after a kill
	}
	g, err := guardian.Post(s.marked, found, s.Then)
	if err != nil {
		s.Note("%v: should this process be killed, what ignores a hangup or left the terminal lives on", err)
		return
	}
	s.strangers[g.PID] = true
	if _, err := childrenOf(strconv.Itoa(os.Getpid())); err != nil {
		s.crowded = true // this kernel has no list of children, so guardedOnly cannot answer
	}
	s.guard = g
	if s.shows() {
		s.Console.follow(g.Undo)
	}
	s.guardPID.Store(int64(g.PID))
	select {
	case s.children <- syscall.SIGCHLD:
	default:
	}
}

// guardedOnly reports whether the guardian is the only child.
func (s *session) guardedOnly() bool {
	pid := s.guardPID.Load()
	return pid != 0 && onlyChild(strconv.FormatInt(pid, 10))
}

// onlyChild asks the kernel for our children, since listing all processes is slow. It asks again if
// a thread ends meanwhile, whose children may pass to a thread that was already asked.
func onlyChild(pid string) bool {
	for range 10 {
		threads, err := os.ReadDir("/proc/self/task")
		whole := err == nil // without a free descriptor nothing is known
		for _, thread := range threads {
			children, err := childrenOf(thread.Name())
			if slices.ContainsFunc(children, func(child string) bool { return child != pid }) {
				return false
			}
			whole = whole && err == nil
		}
		if whole {
			return true
		}
	}
	return false
}

func childrenOf(thread string) ([]string, error) {
	text, err := os.ReadFile("/proc/self/task/" + thread + "/children")
	return strings.Fields(string(text)), err
}

// dismiss ends the guardian, or lets it kill what is left of the session.
func (s *session) dismiss() {
	switch {
	case s.guard == nil:
	case s.over && s.guardPID.Load() != 0:
		s.guard.Dismiss()
	default:
		s.guard.Leave()
	}
}

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
	return guardian.Family(s.family.Leader, func(pid int) bool { return s.strangers[pid] })
}

// kin returns the children that this process already has, as after a shell script's exec, and their
// descendants. They do not belong to the session.
func kin() (strangers map[int]bool) {
	strangers = map[int]bool{}
	if guardian.Adopts && onlyChild("") { // no children at all, and listing all processes is slow
		return strangers
	}
	for _, p := range guardian.Family(0, func(int) bool { return false }) {
		strangers[p.PID] = true
	}
	return strangers
}
