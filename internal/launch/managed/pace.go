package managed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/words"
)

const (
	// firstRest is how long a session that ended too early is rested from; it
	// doubles with each such session in a row, up to mostRest.
	firstRest = time.Second
	mostRest  = 5 * time.Minute
	// maxHold is the longest back-off that is waited for while an inbox is drained:
	// whoever started this comes back later.
	maxHold = 10 * time.Minute
)

// enough tells whether the work ends here, nil if it does not.
func (r *run) enough(st state) *ending {
	switch {
	case r.Mode == Drain && !st.waits:
		return r.nothingWaits(st)
	case r.Mode == Drain && st.paused != nil:
		return r.paused(st.paused)
	case r.Mode == Drain && st.backoff != nil && time.Until(st.backoff.Until) > maxHold:
		return &ending{reason: BackingOff, detail: fmt.Sprintf("until %s%s", words.Stamp(st.backoff.Until), because(st.backoff.Failure))}
	case r.Mode == Drain && !r.UntilDrained && r.report.Sessions > 0:
		return &ending{reason: Left, detail: "the session ended, and entries wait"}
	case st.waits && r.box.CheckRoom() != nil:
		return &ending{reason: Full, detail: r.box.CheckRoom().Error()}
	case r.fruitless > r.MaxRestarts:
		return &ending{reason: Exhausted, detail: words.Count(r.fruitless, "session", "sessions") +
			" in a row ended without an answered entry" + because(r.failure(st))}
	}
	return nil
}

func (r *run) failure(st state) *inbox.Failure {
	if st.backoff == nil {
		return nil
	}
	return st.backoff.Failure
}

func because(f *inbox.Failure) string {
	if f == nil {
		return ""
	}
	return ": " + words.Brief(f.String())
}

// paused tells a pause that an error of the API asked for from a person's.
func (r *run) paused(p *inbox.Pause) *ending {
	e := &ending{reason: Paused, detail: "delivery is paused, until `heartbeat resume`"}
	if p.Reason != "" {
		e.detail += ": " + words.Brief(p.Reason)
	}
	name, message, _ := strings.Cut(p.Reason, ": ")
	switch {
	case !slices.Contains(claude.FailureNames(), name):
	case claude.AsksForLogin(name):
		e.reason = Authentication
	case claude.RemedyFor(name, message).Person:
		e.reason = Refused
	}
	return e
}

// rest is how long the next session has to wait.
func (r *run) rest(st state) time.Duration {
	rest := time.Until(r.notBefore)
	if r.Mode == Drain && st.backoff != nil {
		rest = max(rest, time.Until(st.backoff.Until))
	}
	if !st.waits {
		rest = max(rest, time.Until(st.asleep))
	}
	return rest
}

// sleep waits, until something happens in the inbox or ends the work.
func (r *run) sleep(rest time.Duration) *ending {
	timer := time.NewTimer(rest)
	defer timer.Stop()
	ctx, cancel := r.inTime()
	defer cancel()
	select {
	case <-timer.C:
	case <-r.follow.changed:
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return r.timedOut()
	}
	return nil
}

// inTime is done once a signal has come, or the time is over, if that has an end.
func (r *run) inTime() (context.Context, context.CancelFunc) {
	if r.deadline.IsZero() {
		return context.WithCancel(r.ctx)
	}
	return context.WithDeadline(r.ctx, r.deadline)
}

func signalled(sig syscall.Signal) *ending {
	return &ending{reason: Signalled, signal: sig, detail: "this process got a signal: " + sig.String()}
}

func (r *run) timedOut() *ending {
	return &ending{reason: TimedOut, detail: "the time was over (--timeout " + r.Terminal.Timeout.String() + ")"}
}

// restBehind sets when the session behind one that ended may begin.
func (r *run) restBehind() {
	r.notBefore = time.Time{}
	if !r.early {
		return
	}
	rest := firstRest
	for range r.fruitless - 1 {
		rest = min(2*rest, mostRest)
	}
	rest += time.Duration(rand.Float64() * float64(rest) / 5) // not all at once after an outage
	r.notBefore = time.Now().Add(rest)
}
