package why

import (
	"fmt"

	recovery "heartbeat/recover"

	"heartbeat/internal/host"
	"heartbeat/internal/words"
)

// waker returns the process that waits in the background to wake its session, unless it
// is known to have ended.
func (f Facts) waker() *Waiter {
	w := f.Waiter
	if w == nil || w.Life == host.Gone || w.Life == host.Rebooted {
		return nil
	}
	if s := f.session(w.SessionID); s != nil && s.EndedAt != nil {
		return nil
	}
	return w
}

// idle says which session the next entry is sure to wake, or nothing.
func (f Facts) idle() string {
	w := f.waker()
	if w == nil || w.Life != host.Alive {
		return ""
	}
	return "; " + sessionName(w.SessionID) + " is idle, and the next entry wakes it"
}

// waking explains entries that a process in the background takes.
func (f Facts) waking(w *Waiter, waits string) (State, string) {
	name := sessionName(w.SessionID)
	if s := f.session(w.SessionID); s != nil && s.Failure != nil && s.Failure.Error == recovery.HookError && s.Failure.At.After(w.Since) {
		return SessionDown, fmt.Sprintf("%s, and process %d, which is to wake %s, met an error at %s (%s): it tries again, within a minute once that is mended", waits, w.PID, name, words.Stamp(s.Failure.At), s.Failure.Message)
	}
	if w.Life == host.Alive {
		return Waking, fmt.Sprintf("%s, and %s takes what is next within moments: process %d waits in the background to wake it", waits, name, w.PID)
	}
	return SessionBusy, fmt.Sprintf("%s for process %d, which waited in the background to wake %s: whether it still runs is not known", waits, w.PID, name)
}

// wakerGone reports whether the next session stays idle because the process that should
// wake it died.
func (f Facts) wakerGone(current *Session) bool {
	if f.Waiter == nil || f.Waiter.Life != host.Gone {
		return false
	}
	return current == nil || current.ID == f.Waiter.SessionID && current.runs()
}

// refused reports whether a session cannot be woken although it is wired for that.
func (f Facts) refused(s *Session) bool {
	return s.Failure != nil && s.Failure.Error == recovery.CannotWake && f.since(s).Before(s.Failure.At)
}

// Runs reports whether a session still runs, as far as is known.
func (s *Session) Runs() bool { return s.runs() }

func (s *Session) runs() bool {
	return s.EndedAt == nil && s.Life != host.Gone && s.Life != host.Rebooted
}

func sessionName(id string) string {
	if id == "" {
		return "its session"
	}
	return "session " + words.Short(id)
}
