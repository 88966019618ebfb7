package metrics

import (
	"heartbeat/inbox"
	"heartbeat/internal/host"
)

// backoff sets the figures of turns that ended in errors.
func (f *Figures) backoff(v *inbox.View) error {
	b, err := v.Backoff()
	if err != nil {
		return err
	}
	if b != nil {
		f.BackingOff, f.BackingOffUntil = true, timestamp(b.Until)
	}
	f.FailuresInARow, err = v.Streak()
	return err
}

// consumers sets the figures of sessions and of the process that wakes one.
func (f *Figures) consumers(v *inbox.View) error {
	w, err := v.Waiter()
	if err != nil {
		return err
	}
	alive, known := false, true
	if w != nil {
		alive, known = host.Lives(w.Boot, w.Namespace, w.PID, w.ProcessStart)
	}
	if known {
		f.Waiter = &alive
	}
	sessions, err := v.Sessions()
	for _, s := range sessions {
		f.WaitingForPerson = f.WaitingForPerson || asks(s)
	}
	return err
}

// asks reports whether a live session waits for a person.
func asks(s inbox.Session) bool {
	alive, known := host.Lives(s.Boot, s.Namespace, s.PID, s.ProcessStart)
	return s.Asks != nil && s.EndedAt == nil && (alive || !known)
}
