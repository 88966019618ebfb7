package terminal

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"heartbeat/internal/host"
	"heartbeat/internal/host/guardian"
)

// guardAfter is how long a command runs without a guardian: it is to cost its start
// no time, and a command that is over by then nothing at all.
const guardAfter = 5 * time.Millisecond

// mark has all that will be of the session carry a name that nobody else has.
func (s *session) mark() (err error) {
	if !s.Guard || !orphansFall {
		return nil
	}
	if s.marked, err = host.RandomName(); err == nil {
		s.Env = guardian.Marked(s.Env, s.marked)
	}
	return err
}

// post has a guardian stand by. Whoever reaps may take it for one of the session
// until it is told.
func (s *session) post() {
	g, err := guardian.Post(s.marked, s.caller.found)
	if err != nil {
		s.Note("%v: should this process be killed, what ignores a hangup or left the terminal lives on", err)
		return
	}
	if s.strangers == nil {
		s.strangers = map[int]bool{}
	}
	s.strangers[g.PID] = true
	if _, err := childrenOf(strconv.Itoa(os.Getpid())); err != nil {
		s.crowded = true // the kernel was built without the list: nobody tells who is alone with the guardian
	}
	s.guard = g
	s.guardPID.Store(int64(g.PID))
	select {
	case s.children <- syscall.SIGCHLD:
	default:
	}
}

// guardedOnly reports whether the guardian is the only child there is.
func (s *session) guardedOnly() bool {
	pid := s.guardPID.Load()
	return pid != 0 && onlyChild(strconv.FormatInt(pid, 10))
}

// onlyChild asks the kernel, since listing all processes takes long. Where a thread
// has ended meanwhile, its children fell to one that may have been asked before.
func onlyChild(pid string) bool {
	for range 10 {
		threads, _ := os.ReadDir("/proc/self/task") // without it there is no guardian
		whole := true
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

// dismiss ends the guardian, unless somebody is left for it to kill.
func (s *session) dismiss() {
	switch {
	case s.guard == nil:
	case s.over && s.guardPID.Load() != 0:
		s.guard.Dismiss()
	default:
		s.guard.Leave()
	}
}
