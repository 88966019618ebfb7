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

// Caught holds the signals that have come since [Catch].
type Caught struct {
	received      chan os.Signal
	stop          chan struct{}
	stopped       sync.Once
	warm          chan struct{}
	first, second context.Context       // done when the signal has come
	cancel        [2]context.CancelFunc // ends first, then second

	mu     sync.Mutex
	spares bool // see [Caught.Spare]
	signal syscall.Signal
	at     time.Time // when an end other than a warm one was asked for
}

// Catch catches the signals that end a program, until [Caught.Stop]. Signals ignored at the start, as
// under nohup, stay ignored.
func Catch() *Caught {
	t := &Caught{received: make(chan os.Signal, 4), stop: make(chan struct{}), warm: make(chan struct{})}
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

func (t *Caught) wait() {
	for _, cancel := range t.cancel {
		for asked := false; !asked; {
			select {
			case sig := <-t.received:
				if asked = t.note(sig.(syscall.Signal)); asked {
					cancel()
				}
			case <-t.stop:
				return
			}
		}
	}
}

// note records a signal, and reports whether it asks for more than a warm stop.
func (t *Caught) note(sig syscall.Signal) (asked bool) {
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

// Spare makes a later SIGTERM, if it is the first signal, ask for a warm stop: it closes [Caught.Warm], and
// only the signal after it closes [Caught.First].
func (t *Caught) Spare() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spares = true
}

// Warm is closed by a signal that asks to begin nothing new and to end after the current work.
func (t *Caught) Warm() <-chan struct{} { return t.warm }

// First is closed by the first signal, which asks for an orderly end.
func (t *Caught) First() <-chan struct{} { return t.first.Done() }

// Second is closed by the second signal, which asks to end at once.
func (t *Caught) Second() <-chan struct{} { return t.second.Done() }

// Signal returns the first signal, or 0, and when an end other than a warm one was asked for.
func (t *Caught) Signal() (syscall.Signal, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.signal, t.at
}

// Context is done when [Caught.First] is closed.
func (t *Caught) Context() (context.Context, context.CancelFunc) { return context.WithCancel(t.first) }

// Hurry returns a context that ends with the second signal, or grace after the first, but not within a second
// from now. Before any signal it has no deadline; after a warm stop it ends grace from now.
func (t *Caught) Hurry(grace time.Duration) (context.Context, context.CancelFunc) {
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
func (t *Caught) Stop() {
	t.stopped.Do(func() {
		signal.Stop(t.received)
		close(t.stop)
	})
}
