package session

import (
	"fmt"
	"strings"

	"heartbeat/internal/words"
)

// Decision is what a session came to.
type Decision struct {
	State State
	// Error says why the session is not completed, in one sentence.
	Error string
	// Code is the exit status for the report: that of the client, 1 if it had none.
	Code int
}

// Decide says what a session came to. A request to cancel counts for more than
// anything else; then, a session is completed if every entry was answered, whatever
// became of its processes, and only then.
func Decide(f Facts) Decision {
	d := Decision{Code: f.code()}
	answered := f.Entries.Answered > 0 && f.Entries.Unanswered() == 0
	switch {
	case f.Cancelled != "":
		d.State, d.Error = Cancelled, "cancelled by "+f.Cancelled
		if answered {
			d.Error += ", after every prompt had been answered"
		}
	case answered:
		d.State = Completed
	case f.RateLimit != "":
		d.State, d.Error = RateLimited, f.rateLimit()
	case f.TimedOut > 0:
		d.State, d.Error = TimedOut, f.with("the session was ended after "+f.TimedOut.String()+" (--timeout)")
	case f.Broken != "":
		d.State, d.Error = Failed, f.Broken
	default:
		d.State, d.Error = Failed, f.with(f.failure())
	}
	if d.State != Completed && d.Code == 0 && f.Exit == nil {
		d.Code = 1
	}
	return d
}

// code is the client's exit status, and 1 if it was ended by a signal.
func (f Facts) code() int {
	switch {
	case f.Exit == nil && f.Entries.Answered > 0 && f.Entries.Unanswered() == 0:
		return 0
	case f.Exit == nil || f.Exit.Code < 0:
		return 1
	}
	return f.Exit.Code
}

func (f Facts) rateLimit() string {
	text := f.RateLimit
	if !f.ResetsAt.IsZero() {
		text += fmt.Sprintf(" (resets at %s)", f.ResetsAt.UTC().Format("2006-01-02T15:04:05Z"))
	}
	return text
}

// failure says why a session failed that nobody ended on purpose.
func (f Facts) failure() string {
	switch {
	case f.HostDied:
		return "the session's host was killed"
	case f.Stalled > 0:
		return "the session was ended after " + f.Stalled.String() + " without progress (--stall-action cancel)"
	case f.Lingered > 0:
		return "claude did not exit within " + f.Lingered.String() + " after its result, and was ended"
	case f.Exit == nil:
		return "claude was not started"
	case f.Exit.Signal != "":
		return "claude was ended by " + f.Exit.Signal
	}
	return fmt.Sprintf("claude exited with code %d", f.Exit.Code)
}

// with adds what the client's result and the fates of the entries say.
func (f Facts) with(text string) string {
	all := []string{text}
	if r := f.Result; r != nil && r.IsError {
		said := "its result is an error"
		if r.Subtype != "" && r.Subtype != "success" {
			said += " (" + r.Subtype + ")"
		}
		if r.Text != "" {
			said += ": " + r.Text
		}
		all = append(all, said)
	}
	if f.Entries.Total() == 0 {
		return strings.Join(append(all, "no prompt was answered"), "; ")
	}
	return strings.Join(append(all, f.Entries.sentence()), "; ")
}

// sentence tells how many entries were not answered, and where they are.
func (e Entries) sentence() string {
	text := fmt.Sprintf("%d of %s answered", e.Answered, words.Count(e.Total(), "prompt", "prompts"))
	for _, where := range []struct {
		n    int
		what string
	}{{e.InFlight, "in flight"}, {e.Queued, "waiting"}, {e.DeadLettered, "set aside as dead letters"}, {e.Dropped, "dropped"}} {
		if where.n > 0 {
			text += fmt.Sprintf(", %d %s", where.n, where.what)
		}
	}
	return text
}
