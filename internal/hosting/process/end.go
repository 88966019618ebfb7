package process

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/machine/guardian"
)

// End asks the client to end and, after grace, kills it with everything that it started. A second
// call can only shorten the time. End does not wait.
func (p *Process) End(grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
		return
	default:
	}
	by := time.Now().Add(grace)
	if p.killAt == nil {
		p.family.Ask()
	} else if !by.Before(p.killBy) || !p.killAt.Stop() {
		return // it is killed earlier, or was killed
	}
	p.killBy, p.killAt = by, time.AfterFunc(grace, p.kill)
}

// kill holds the lock to its end, so that EndRest waits for it, and its sweep cannot kill the next client.
func (p *Process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
		return
	default:
	}
	p.family.Kill()
	p.sweep()
}

// How long the client's remaining processes have to end by themselves.
const (
	leftFor   = 500 * time.Millisecond
	pollEvery = 20 * time.Millisecond
)

// EndRest ends what the client left behind: it sends signals to end, waits for half a second, and kills. Call
// it after Ended. It returns how many processes it killed.
func (p *Process) EndRest() (killed int) {
	defer p.stopReap() // before another client starts, whose end reap would see
	for end := time.Now().Add(leftFor); time.Now().Before(end); time.Sleep(pollEvery) {
		left := guardian.Members(p.mark)
		if len(left) == 0 {
			break
		}
		p.mu.Lock()
		p.family.Press(left)
		p.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sweep()
}

// sweep kills the processes with the client's mark, their descendants, and adopted orphans, and returns how many.
func (p *Process) sweep() (killed int) {
	killed = guardian.Kill(p.mark)
	return killed + guardian.Slay(guardian.Family(0, func(pid int) bool { return pid == p.spared }))
}

// reap waits for the client and for all orphans of what it started, until none is left or EndRest is done.
func (p *Process) reap(client int) {
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGCHLD)
	defer close(p.reaped)
	defer signal.Stop(changes)
	guardian.Reap(changes, p.swept, func(pid int, status syscall.WaitStatus) {
		if pid != client {
			return
		}
		p.exit = Exit{Code: status.ExitStatus()}
		if status.Signaled() {
			p.exit.Signal = unix.SignalName(status.Signal())
		}
		close(p.ended)
	}, func(none bool) bool { return !none })
}
