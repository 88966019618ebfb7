package days

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// killer kills one hook out of a number of them, at a random moment of its run.
type killer struct {
	every  int
	random *rand.Rand

	due   bool // kill the next one: the previous one ended before its kill
	timer *time.Timer
	began time.Time
	// usual is how long a hook runs if it is not killed, as measured so far.
	usual time.Duration
}

// started is called with the hook of each tick.
func (k *killer) started(tick int, hook *os.Process) {
	k.began = time.Now()
	if k.due = k.due || tick%k.every == 0; !k.due {
		return
	}
	after := time.Duration(k.random.Int64N(int64(max(k.usual, time.Millisecond))))
	k.timer = time.AfterFunc(after, func() { _ = hook.Kill() }) // fails if it has ended by itself
}

// ended is called before each turn, when the hook that asked for it has ended.
func (k *killer) ended() {
	if k.began.IsZero() {
		return // no hook asked for a session's first turn
	}
	took := time.Since(k.began)
	if k.usual == 0 {
		k.usual = took
	}
	k.usual += (took - k.usual) / 16
	k.stop()
}

func (k *killer) stop() {
	k.began = time.Time{}
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
}

// killed reports whether a session ended with this error only because its hook was
// killed.
func (k *killer) killed(err error) bool {
	k.stop()
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) && len(all.Unwrap()) > 1 {
		return false
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		return false
	}
	k.due = false
	return true
}
