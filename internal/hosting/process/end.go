package process

import (
	"syscall"
	"time"

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
	if !p.asked {
		p.asked = true
		_ = guardian.SignalGroup(p.PID, syscall.SIGTERM) // fails if it has just ended
		p.killAt = time.AfterFunc(grace, p.kill)
		return
	}
	if p.killAt.Stop() {
		p.killAt = time.AfterFunc(grace, p.kill)
	}
}

func (p *Process) kill() {
	select {
	case <-p.ended:
		return
	default:
	}
	_ = guardian.SignalGroup(p.PID, syscall.SIGKILL) // works even if processes cannot be listed
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
	asked := guardian.Asked{}
	for end := time.Now().Add(leftFor); time.Now().Before(end); time.Sleep(lookEach) {
		left := guardian.Members(p.mark)
		if len(left) == 0 {
			break
		}
		asked.Press(left)
	}
	return Sweep(p.mark)
}

// Sweep kills all processes that carry a mark, with their descendants, and the
// orphans that this process adopted. It returns how many it killed.
func Sweep(mark string) (killed int) {
	killed = guardian.Kill(mark)
	return killed + guardian.Slay(children.orphans())
}
