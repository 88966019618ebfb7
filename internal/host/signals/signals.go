// Package signals catches the signals that end a program, in one place for its whole
// life: every part of it can see that a signal has come, even one from before the
// part began.
package signals

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// enders are the signals that end a program.
var enders = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// Taken holds the signals that have come since [Take].
type Taken struct {
	come          chan os.Signal
	stop          chan struct{}
	stopped       sync.Once
	first, second chan struct{}

	mu     sync.Mutex
	signal syscall.Signal
	at     time.Time
}

// Take catches the signals that end a program, until [Taken.Stop]. A signal that is
// ignored at the start, as under nohup, stays ignored.
func Take() *Taken {
	t := &Taken{
		come: make(chan os.Signal, 4), stop: make(chan struct{}),
		first: make(chan struct{}), second: make(chan struct{}),
	}
	for _, sig := range enders {
		if !signal.Ignored(sig) {
			signal.Notify(t.come, sig)
		}
	}
	go t.wait()
	return t
}

func (t *Taken) wait() {
	for _, told := range []chan struct{}{t.first, t.second} {
		select {
		case sig := <-t.come:
			t.note(sig.(syscall.Signal))
			close(told)
		case <-t.stop:
			return
		}
	}
}

func (t *Taken) note(sig syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.signal == 0 {
		t.signal, t.at = sig, time.Now()
	}
}

// First is closed by the first signal, which asks for an orderly end.
func (t *Taken) First() <-chan struct{} { return t.first }

// Second is closed by the second signal, which asks to end at once.
func (t *Taken) Second() <-chan struct{} { return t.second }

// Signal returns the first signal and when it came, or 0.
func (t *Taken) Signal() (syscall.Signal, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.signal, t.at
}

// Context is done with the first signal.
func (t *Taken) Context() (context.Context, context.CancelFunc) { return until(t.first) }

// Hurry returns a context that ends with the second signal, or grace after the
// first one, but not within a second from now. Before any signal it does not end.
func (t *Taken) Hurry(grace time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := until(t.second)
	sig, at := t.Signal()
	if sig == 0 {
		return ctx, cancel
	}
	soonest, end := time.Now().Add(time.Second), at.Add(grace)
	if end.Before(soonest) {
		end = soonest
	}
	timed, stop := context.WithDeadline(ctx, end)
	return timed, func() { stop(); cancel() }
}

func until(closed <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// Stop restores the signals' default effects.
func (t *Taken) Stop() {
	t.stopped.Do(func() {
		signal.Stop(t.come)
		close(t.stop)
	})
}
