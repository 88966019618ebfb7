package days

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// killer ends one of so many hooks at a random moment of its run.
type killer struct {
	every  int
	random *rand.Rand

	due   bool // one is to be killed: the one before ended too soon for it
	timer *time.Timer
	began time.Time
	// usual is how long a hook runs that nobody kills, as far as is known yet.
	usual time.Duration
}

// started sees the hook of each tick.
func (k *killer) started(tick int, hook *os.Process) {
	k.began = time.Now()
	if k.due = k.due || tick%k.every == 0; !k.due {
		return
	}
	after := time.Duration(k.random.Int64N(int64(max(k.usual, time.Millisecond))))
	k.timer = time.AfterFunc(after, func() { _ = hook.Kill() }) // it may have ended by itself
}

// ended is called before each turn: the hook that asked for it is at its end.
func (k *killer) ended() {
	if k.began.IsZero() {
		return // nobody asked for a session's first turn
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

// killed reports whether a session ended with that error because its hook was
// killed, and for no other reason besides.
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
