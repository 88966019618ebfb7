package managed

import (
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude/screen"
	"heartbeat/internal/host"
	recovery "heartbeat/recover"
)

const (
	// waiterPatience is what the session may need to end, or to have another hook
	// wait, once the one that waited is gone.
	waiterPatience = 2 * time.Second
	// waiterPoll is how often it is asked whether an entry waits, once nobody waits
	// for it: a pause and a back-off end without a sign.
	waiterPoll = 5 * time.Second
)

// guardWaiter ends a session that sleeps, and that nobody would wake: its hook in
// the background was killed. Nothing is lost by that as long as nothing waits.
func (r *run) guardWaiter(s *session) {
	var of string // the hook that waits
	var died <-chan struct{}
	var lost time.Time // when it died
	served := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-r.follow.turned:
		case <-timer.C:
		case <-died:
			died, lost = nil, time.Now()
			timer.Reset(waiterPatience)
			continue
		}
		w := r.follow.waits()
		switch {
		case w == nil:
			of, died = "", nil
			timer.Reset(waiterPoll)
			if !r.sleepsUnwatched(s) {
				served = time.Now()
			} else if time.Since(served) >= r.StartTimeout {
				s.end(verdict{text: "an entry waits, and no hook that would wake it has for " + r.StartTimeout.String()})
				return
			}
		case w.Name != of:
			of, died = w.Name, diedOf(w)
			served = time.Now()
		case died == nil && gone(w) && time.Since(lost) >= waiterPatience:
			if r.unserved() {
				s.end(verdict{text: fmt.Sprintf("an entry waits, and the hook that would wake it is gone (process %d)", w.PID)})
				return
			}
			timer.Reset(waiterPoll)
		}
	}
}

// sleepsUnwatched reports whether an entry waits in vain although no hook is on
// record as waiting, as none is while a turn goes on: the session is at its prompt,
// and nobody types there. Its hook was killed before it waited, or before it woke
// the session.
func (r *run) sleepsUnwatched(s *session) bool {
	return !r.Attended && !s.asks.Load() && screen.Recognise(s.screen.Text()).Kind == screen.Ready && r.unserved()
}

// diedOf follows the process that waits. Of one that cannot be told from others
// of its number nothing is known.
func diedOf(w *inbox.Waiter) <-chan struct{} {
	if _, known := host.Lives(w.Boot, w.Namespace, w.PID, w.ProcessStart); !known {
		return nil
	}
	died := make(chan struct{})
	process := host.WatchProcess(w.PID)
	if gone(w) { // before it was held on to, and its number may be another's by now
		close(died)
		return died
	}
	return process.Died()
}

// gone reports whether the very process that waited is certain to be gone.
func gone(w *inbox.Waiter) bool {
	alive, known := host.Lives(w.Boot, w.Namespace, w.PID, w.ProcessStart)
	return known && !alive
}

// unserved reports whether an entry waits that might be delivered, or that was
// handed over and never taken up.
func (r *run) unserved() bool {
	v, err := r.box.View()
	if err != nil {
		return false // told by the follower
	}
	defer func() { _ = v.Close() }() // only read
	if d := v.InFlight(); d != nil {
		e := recovery.EvidenceOf(d)
		return e.Woken && !e.Bound
	}
	paused, err1 := v.Paused()
	backoff, err2 := v.Backoff()
	if err1 != nil || err2 != nil || paused != nil || backoff != nil {
		return false
	}
	next, err := v.Next(1)
	return err == nil && len(next) > 0
}
