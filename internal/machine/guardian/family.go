package guardian

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"heartbeat/internal/machine"
)

// Family is a program with everything that it starts: its process group, and all descendants of this process that were
// not there before. On Linux orphans among them become children of this process, which must not start or await others
// until the family is over.
type Family struct {
	Leader int // the program's pid, and its process group

	grace      time.Duration
	ends       chan time.Duration
	gone, over chan struct{}
	children   chan os.Signal // a child may have died
	status     atomic.Uint32  // the leader's

	mu    sync.Mutex // while somebody looks, or a guardian is posted
	guard int        // the pid of this process's guardian, 0 for none, and after its death

	// What follows belongs to the goroutine that watches, and to others once over is closed.
	strangers map[int]bool // they and their descendants are not the family's
	dead      bool         // the leader
	killing   bool
	asked     map[int]bool // each process gets SIGTERM once
	killed    map[int]bool // after the leader's end
	left      []machine.Entry
	stuck     bool // see Stuck
}

const (
	// sweepEvery is how often to look for processes started while the others were being killed. The
	// search ends after sweepFor: the kernel may keep a process from dying.
	sweepEvery = 10 * time.Millisecond
	sweepFor   = 2 * time.Second
)

// Start starts a program. Once that ends, what it leaves behind is asked to end, and killed after grace. The kernel kills
// the program if this process dies: see [DiesWithParent]. guard is the pid of this process's guardian, 0 for none.
func Start(path string, command []string, attr *syscall.ProcAttr, grace time.Duration, guard int) (*Family, error) {
	f := &Family{
		grace: grace, ends: make(chan time.Duration), gone: make(chan struct{}), over: make(chan struct{}),
		children: make(chan os.Signal, 1), guard: guard, strangers: map[int]bool{}, asked: map[int]bool{}, killed: map[int]bool{},
	}
	Adopt()
	if !f.alone(f.reap()) { // else nothing is there to list
		for _, p := range f.list() {
			f.strangers[p.PID] = true
		}
	}
	DiesWithParent(attr.Sys)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with this goroutine
		pid, err := syscall.ForkExec(path, command, attr)
		f.Leader = pid
		if started <- err; err == nil {
			if f.watch(); !f.dead {
				f.bury()
			}
		}
	}()
	return f, <-started
}

// Guard posts a guardian, which is none of the family, after the start.
func (f *Family) Guard(mark string, tty *Terminal, then Then) (*Guardian, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, err := Post(mark, tty, then)
	if err == nil {
		f.guard = g.PID
	}
	return g, err
}

// End asks the leader's group to end, and kills the whole family after grace. A second call can only shorten the time.
func (f *Family) End(grace time.Duration) {
	select {
	case f.ends <- grace:
	case <-f.over:
	}
}

// Gone is closed once the leader has ended, with that [Family.Status].
func (f *Family) Gone() <-chan struct{} { return f.gone }

// Status is how the leader ended.
func (f *Family) Status() syscall.WaitStatus { return syscall.WaitStatus(f.status.Load()) }

// Over is closed once nobody is left, or [Family.Stuck] are.
func (f *Family) Over() <-chan struct{} { return f.over }

// Stuck reports, once it is over, whether somebody could not be killed, and who, if that is known.
func (f *Family) Stuck() (who []machine.Entry, stuck bool) { return f.left, f.stuck }

// Killed is, once it is over, how many had to be killed after the leader's end.
func (f *Family) Killed() int { return len(f.killed) }

// watch reaps all children of this process and does what the time and [Family.End] ask for, until it is over.
func (f *Family) watch() {
	signal.Notify(f.children, syscall.SIGCHLD)
	defer close(f.over)
	defer signal.Stop(f.children)
	var kill, sweep <-chan time.Time
	var due, giveUp time.Time // of the killing
	shorten := func(grace time.Duration) {
		if by := time.Now().Add(grace); due.IsZero() || by.Before(due) {
			due, kill = by, time.After(grace)
		}
	}
	for {
		gone := f.dead
		alone, over := f.look()
		if f.dead && !gone {
			close(f.gone)
			shorten(f.grace)
		}
		switch {
		case over:
			return
		case f.killing && time.Now().After(giveUp):
			f.stuck = true
			return
		case f.killing, f.dead && alone: // others than children are polled for
			sweep = time.After(sweepEvery)
		}
		select {
		case <-f.children:
		case grace := <-f.ends:
			if due.IsZero() {
				_ = SignalGroup(f.Leader, syscall.SIGTERM) // fails if it has just ended
			}
			shorten(grace)
		case <-kill:
			f.killing, giveUp = true, time.Now().Add(sweepFor)
			if !f.dead {
				_ = SignalGroup(f.Leader, syscall.SIGKILL) // works even if processes cannot be listed
			}
		case <-sweep:
		}
	}
}

// bury waits for a leader that could not be killed in time: the kernel may let it go later.
func (f *Family) bury() {
	var status syscall.WaitStatus
	for err := error(syscall.EINTR); err == syscall.EINTR; {
		_, err = syscall.Wait4(f.Leader, &status, 0, nil)
	}
	f.status.Store(uint32(status))
	close(f.gone)
}

// look reaps the dead, and asks or kills the others if it is time to.
func (f *Family) look() (alone, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch alone = f.alone(f.reap()); {
	case alone && Adopts:
		return true, true
	case !f.dead && !f.killing:
		return alone, false
	}
	if f.left = f.list(); len(f.left) == 0 {
		alone = f.alone(f.reap()) // who has died meanwhile: beside strangers nobody looks again
	}
	for _, p := range f.left {
		switch {
		case f.killing:
			_ = Send(p, syscall.SIGKILL) // fails if it has just ended
			if f.dead {
				f.killed[p.PID] = true
			}
		case !f.asked[p.PID]:
			f.asked[p.PID] = true
			_ = Send(p, syscall.SIGTERM) // likewise
		}
	}
	_, err := childrenOf(strconv.Itoa(os.Getpid())) // a kernel without lists of children cannot tell who is beside a guardian
	crowded := len(f.strangers) > 0 || f.guard != 0 && errors.Is(err, fs.ErrNotExist)
	return alone, f.dead && len(f.left) == 0 && (alone || crowded) // the list may miss what forks meanwhile
}

// reap reaps the children that have ended, and reports whether none is left.
func (f *Family) reap() (none bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil || pid == 0:
			return err != nil
		case pid == f.Leader:
			f.dead = true
			f.status.Store(uint32(status))
		case pid == f.guard:
			f.guard = 0
		}
	}
}

// alone reports whether this process has no children, or none but its guardian.
func (f *Family) alone(none bool) bool {
	return none || f.guard != 0 && (f.dead || f.Leader == 0) && onlyChild(strconv.Itoa(f.guard))
}

// list lists who lives.
func (f *Family) list() []machine.Entry {
	return below(func(p machine.Entry) bool { return f.Leader != 0 && p.Group == f.Leader || p.Parent == os.Getpid() },
		func(pid int) bool { return f.strangers[pid] || pid == f.guard })
}

// onlyChild reports whether this process has no child but pid. It reads the kernel's lists of each thread's children,
// since listing all processes is slow. If a thread ends meanwhile, it reads them again: the thread's children may have
// passed to one whose list was already read.
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
