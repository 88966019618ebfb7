// Package signals catches the signals that end a program, in one place for the program's whole life:
// each part sees every signal, even one from before the part began.
package signals

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

var enders = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// Taken holds the signals that have come since [Take].
type Taken struct {
	received      chan os.Signal
	stop          chan struct{}
	stopped       sync.Once
	warm          chan struct{}
	first, second context.Context       // done when the signal has come
	cancel        [2]context.CancelFunc // ends first, then second

	mu     sync.Mutex
	spares bool // see [Taken.Spare]
	signal syscall.Signal
	at     time.Time // when an end other than a warm one was asked for
}

// Take catches the signals that end a program, until [Taken.Stop]. Signals ignored at the start, as
// under nohup, stay ignored.
func Take() *Taken {
	t := &Taken{received: make(chan os.Signal, 4), stop: make(chan struct{}), warm: make(chan struct{})}
	t.first, t.cancel[0] = context.WithCancel(context.Background())
	t.second, t.cancel[1] = context.WithCancel(context.Background())
	for _, sig := range enders {
		if !signal.Ignored(sig) {
			signal.Notify(t.received, sig)
		}
	}
	go t.wait()
	return t
}

func (t *Taken) wait() {
	for _, tell := range t.cancel {
		for asked := false; !asked; {
			select {
			case sig := <-t.received:
				if asked = t.note(sig.(syscall.Signal)); asked {
					tell()
				}
			case <-t.stop:
				return
			}
		}
	}
}

// note records a signal, and reports whether it asks for more than a warm stop.
func (t *Taken) note(sig syscall.Signal) (asked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.signal == 0
	if first {
		t.signal = sig
	}
	if first && t.spares && sig == syscall.SIGTERM {
		close(t.warm)
		return false
	}
	if t.at.IsZero() {
		t.at = time.Now()
	}
	return true
}

// Spare makes a later SIGTERM, if it is the first signal, ask for a warm stop: it closes [Taken.Warm], and
// only the signal after it closes [Taken.First].
func (t *Taken) Spare() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spares = true
}

// Warm is closed by a signal that asks to begin nothing new and to end after the current work.
func (t *Taken) Warm() <-chan struct{} { return t.warm }

// First is closed by the first signal, which asks for an orderly end.
func (t *Taken) First() <-chan struct{} { return t.first.Done() }

// Second is closed by the second signal, which asks to end at once.
func (t *Taken) Second() <-chan struct{} { return t.second.Done() }

// Signal returns the first signal, or 0, and when an end other than a warm one was asked for.
func (t *Taken) Signal() (syscall.Signal, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.signal, t.at
}

// Context is done when [Taken.First] is closed.
func (t *Taken) Context() (context.Context, context.CancelFunc) { return context.WithCancel(t.first) }

// Hurry returns a context that ends with the second signal, or grace after the first, but not within a second
// from now. Before any signal it has no deadline; after a warm stop it ends grace from now.
func (t *Taken) Hurry(grace time.Duration) (context.Context, context.CancelFunc) {
	sig, at := t.Signal()
	if sig == 0 {
		return context.WithCancel(t.second)
	}
	if at.IsZero() {
		at = time.Now()
	}
	soonest, end := time.Now().Add(time.Second), at.Add(grace)
	if end.Before(soonest) {
		end = soonest
	}
	return context.WithDeadline(t.second, end)
}

// Stop restores the signals' default effects.
func (t *Taken) Stop() {
	t.stopped.Do(func() {
		signal.Stop(t.received)
		close(t.stop)
	})
}
