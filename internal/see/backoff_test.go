package see_test

import (
	"testing"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/see"
)

// backoff began a minute ago, and ends in three.
func backoff(streak int) *inbox.Backoff {
	return &inbox.Backoff{At: at(-1), Until: at(3), Streak: streak, Failure: failed(-1)}
}

func TestExplainABackoff(t *testing.T) {
	const held = "backing off until <3> (overloaded: try later), after 3 failures in a row: "
	const again = held + "then the entry 0123456789ab is handed over again"
	const end = "; heartbeat resume ends it at once"
	// given has an entry given back, for which somebody may wait.
	given := func(w *see.Waiter, s []see.Session) see.Facts {
		return facts(func(f *see.Facts) {
			f.Backoff, f.Redeliver, f.Backlog, f.Waiter, f.Sessions = backoff(3), inFlight(), waiting(2), w, s
		})
	}
	for name, c := range map[string]explained{
		"somebody waits": {given(waiter(machine.Alive), session()),
			see.BackingOff, again + "; heartbeat resume goes on at once"},
		"perhaps somebody waits": {given(waiter(machine.Unknown), session(life(machine.Unknown))),
			see.BackingOff, again + ", if process 99 still waits to do so" + end},
		"who waits is stopped": {given(stopped(), session()),
			see.BackingOff, again + ", but process 99, which is to wake session s1, is stopped, by SIGSTOP or Ctrl-Z: kill -CONT 99 has it go on"},
		"who waited is gone": {given(waiter(machine.Gone), session()),
			see.BackingOff, again + " at the next Stop of session s1, since the process that was to wake it (process 99) is gone" + end},
		"who waited is gone, the session unknown": {given(waiter(machine.Gone), nil),
			see.BackingOff, again + " at the next Stop, since the process that was to wake session s1 (process 99) is gone" + end},
		"at work": {given(nil, session()),
			see.BackingOff, again + " at the next Stop of session s1" + end},
		"no session runs": {given(waiter(machine.Gone), session(life(machine.Gone))),
			see.BackingOff, again + " to whoever comes, but no session is known to run: start one by then" + end},
		"the session ended": {given(nil, session(ended(-1))),
			see.BackingOff, again + " to whoever comes, but no session is known to run: start one by then" + end},
		"no session is known": {given(nil, nil),
			see.BackingOff, again + " to whoever comes, but no session is known to run: start one by then" + end},
		"a launcher sees to it": {facts(func(f *see.Facts) {
			f.Backoff, f.Redeliver, f.Backlog = backoff(3), inFlight(), waiting(2)
			f.Launcher = &see.Launcher{PID: 7, Doing: "resting until noon"}
		}), see.BackingOff, again + " to the next session, and the launcher, process 7, sees to the next session: resting until noon" + end},
		"once, and named": {facts(func(f *see.Facts) {
			f.Backoff, f.Backlog, f.Waiter = backoff(1), waiting(2), waiter(machine.Alive)
			f.Backoff.Named = true
		}), see.BackingOff, "backing off until <3> (overloaded: try later), just after the time that the error named: then the next entry is handed over; heartbeat resume goes on at once"},
		"nothing waits": {facts(func(f *see.Facts) { f.Backoff, f.Waiter = backoff(3), waiter(machine.Alive) }),
			see.BackingOff, held + "an entry that comes waits until then, or until heartbeat resume"},
		"a torn line waits": {facts(func(f *see.Facts) { f.Backoff, f.Backlog = backoff(3), inbox.Backlog{Entries: 1, Torn: true} }),
			see.BackingOff, held + "an entry that comes waits until then, or until heartbeat resume"},
		"without a reason": {facts(func(f *see.Facts) { f.Backoff = &inbox.Backoff{Until: at(3), Streak: 1} }),
			see.BackingOff, "backing off until <3>: an entry that comes waits until then, or until heartbeat resume"},
		"paused": {facts(func(f *see.Facts) { f.Backoff, f.Paused, f.Backlog = backoff(3), &inbox.Pause{At: at(-2)}, waiting(1) }),
			see.Paused, "delivery is paused since <-2>: nothing is delivered until heartbeat resume"},
	} {
		t.Run(name, c.check)
	}
}
