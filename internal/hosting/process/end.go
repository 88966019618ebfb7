package process

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
)

// End asks the client to end, and kills it with everything that it started if it has
// not ended after grace. A second call can only shorten the time. It does not wait.
func (p *Process) End(grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
		return
	default:
	}
	if p.killAt == nil {
		p.family.Ask()
	} else if !p.killAt.Stop() {
		return // it is killed already
	}
	p.killAt = time.AfterFunc(grace, p.kill)
}

func (p *Process) kill() {
	select {
	case <-p.ended:
		return
	default:
	}
	p.mu.Lock()
	p.family.Kill()
	p.mu.Unlock()
	Sweep(p.mark)
}

// How long the processes that a client left behind have to end by themselves.
const (
	leftFor  = 500 * time.Millisecond
	lookEach = 20 * time.Millisecond
)

// EndRest ends what the client left behind: it asks, waits for half a second, and
// kills. Call it after Ended. It returns how many processes it had to kill.
func (p *Process) EndRest() (killed int) {
	for end := time.Now().Add(leftFor); time.Now().Before(end); time.Sleep(lookEach) {
		left := guardian.Members(p.mark)
		if len(left) == 0 {
			break
		}
		p.mu.Lock()
		p.family.Press(left)
		p.mu.Unlock()
	}
	return Sweep(p.mark)
}

// Sweep kills all processes that carry a mark, with their descendants, and the
// orphans that this process adopted. It returns how many it killed.
func Sweep(mark string) (killed int) {
	killed = guardian.Kill(mark)
	return killed + guardian.Slay(children.orphans())
}

// reaper waits for the children of this process.
type reaper struct {
	mu      sync.Mutex // held while a child is started, so that its status is not dropped
	adopts  bool       // it waits for all children, also for adopted ones
	waiting map[int]chan<- syscall.WaitStatus
	spared  int // the guardian
}

var children = reaper{waiting: map[int]chan<- syscall.WaitStatus{}}

// start starts a child. bury is called with its status at the end.
func (r *reaper) start(path string, command []string, attr *syscall.ProcAttr, bury func(syscall.WaitStatus)) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	adopts, told := r.adopts, make(chan syscall.WaitStatus, 1)
	pid, err := guardian.Start(path, command, attr, func(pid int) {
		if !adopts {
			told <- wait(pid)
		}
		bury(<-told)
	})
	if err == nil && adopts {
		r.waiting[pid] = told
	}
	return pid, err
}

func wait(pid int) (status syscall.WaitStatus) {
	for err := error(syscall.EINTR); err == syscall.EINTR; {
		_, err = syscall.Wait4(pid, &status, 0, nil)
	}
	return status
}

// died tells who waits for a child.
func (r *reaper) died(pid int, status syscall.WaitStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if told, ours := r.waiting[pid]; ours {
		delete(r.waiting, pid)
		told <- status
	}
}

// stranger reports whether a child was started by this process itself.
func (r *reaper) stranger(pid int) bool {
	_, ours := r.waiting[pid]
	return ours || pid == r.spared
}

// Adopt makes the orphans of clients children of this process, so that they are found
// and reaped. From then on this process must start no other children that it waits
// for itself. Call it once, before the first client starts.
func Adopt() {
	if !guardian.Adopts {
		return
	}
	guardian.Adopt()
	children.mu.Lock()
	children.adopts = true
	children.mu.Unlock()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	go guardian.Reap(signals, nil, children.died, func(bool) bool { return true })
}

// Spare exempts a child of this process, its guardian, from [Sweep].
func Spare(pid int) {
	children.mu.Lock()
	defer children.mu.Unlock()
	children.spared = pid
}

// orphans are the processes that this process adopted, and what descends from them.
func (r *reaper) orphans() []machine.Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.adopts {
		return nil
	}
	return guardian.Family(0, r.stranger)
}
