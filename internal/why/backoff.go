package why

import (
	"fmt"

	"heartbeat/inbox"
	"heartbeat/internal/host"
	"heartbeat/internal/words"
)

// backingOff explains a back-off, which ends by itself.
func (f Facts) backingOff() (State, string) {
	b := f.Backoff
	if b == nil {
		return "", ""
	}
	sentence := b.String() + ", after " + words.Count(b.Streak, "failure", "failures in a row")
	if b.Named {
		sentence = b.String() + ", just after the time that the error named, and after " + words.Count(b.Streak, "failure", "failures in a row")
	}
	if !f.something() {
		return BackingOff, sentence + ": an entry that comes waits until " + inbox.BackoffEnds
	}
	return BackingOff, sentence + ": " + f.afterwards()
}

// afterwards says who continues after a back-off.
func (f Facts) afterwards() string {
	then := "then the next entry is handed over"
	if d := f.Redeliver; d != nil {
		then = fmt.Sprintf("then the entry %s is handed over again", words.Name(d.ID(), d.EntryID))
	}
	const end = "; heartbeat resume ends it at once"
	w, s := f.waker(), f.Current()
	switch {
	case w != nil && w.Life == host.Alive:
		return then + "; heartbeat resume goes on at once"
	case w != nil:
		return fmt.Sprintf("%s, if process %d still waits to do so%s", then, w.PID, end)
	case s == nil && f.wakerGone(s):
		return fmt.Sprintf("%s at the next Stop, since the process that was to wake %s (process %d) is gone%s", then, sessionName(f.Waiter.SessionID), f.Waiter.PID, end)
	case s == nil || !s.runs():
		return then + " to whoever comes, but no session is known to run: start one" + end
	case f.wakerGone(s):
		return fmt.Sprintf("%s at the next Stop of session %s, since the process that was to wake it (process %d) is gone%s", then, words.Short(s.ID), f.Waiter.PID, end)
	}
	return fmt.Sprintf("%s at the next Stop of session %s%s", then, words.Short(s.ID), end)
}
