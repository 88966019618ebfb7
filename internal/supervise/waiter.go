package supervise

import (
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/screen"
)

const (
	// waiterPatience is how long the session may take to end, or to start another hook
	// that waits, once the one that waited is gone.
	waiterPatience = 2 * time.Second
	// waiterPoll is how often the inbox is looked at while no hook waits: a pause and a
	// back-off end without an event.
	waiterPoll = 5 * time.Second
)

// guardWaiter ends a session that sleeps and that nothing would wake, since its hook in
// the background was killed. As long as no entry waits, it may sleep on.
func (r *run) guardWaiter(s *session) {
	var name string // of the hook that waits
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
		w := r.follow.waitingHook()
		switch {
		case w == nil:
			name, died = "", nil
			timer.Reset(waiterPoll)
			if !r.sleepsUnwatched(s) {
				served = time.Now()
			} else if time.Since(served) >= r.StartTimeout {
				s.end(verdict{text: "an entry waits, and no hook that would wake it has for " + r.StartTimeout.String()})
				return
			}
		case w.Name != name:
			name, died = w.Name, deathOf(w)
			served = time.Now()
		case died == nil && gone(w) && time.Since(lost) >= waiterPatience:
			if entryUnserved(r.box) {
				s.end(verdict{text: fmt.Sprintf("an entry waits, and the hook that would wake it is gone (process %d)", w.PID)})
				return
			}
			timer.Reset(waiterPoll)
		}
	}
}

// sleepsUnwatched reports whether an entry waits in vain for a session at its prompt,
// where nobody types: its hook was killed before it waited, or before it woke the
// session. That no hook is on record as waiting does not tell, since none is during a
// turn.
func (r *run) sleepsUnwatched(s *session) bool {
	return !r.attended() && !s.asking() && s.sight().Kind == screen.Ready && entryUnserved(r.box)
}

// deathOf is closed when the process that waits dies. It is nil where that process cannot
// be told from another one of the same number.
func deathOf(w *inbox.Waiter) <-chan struct{} {
	if _, known := machine.Lives(w.Boot, w.Namespace, w.PID, w.ProcessStart); !known {
		return nil
	}
	died := make(chan struct{})
	process := machine.WatchProcess(w.PID)
	if gone(w) { // before it was watched, and its number may be another's by now
		close(died)
		return died
	}
	return process.Died()
}

// gone reports whether the process that waited is certain to be gone.
func gone(w *inbox.Waiter) bool {
	alive, known := machine.Lives(w.Boot, w.Namespace, w.PID, w.ProcessStart)
	return known && !alive
}
