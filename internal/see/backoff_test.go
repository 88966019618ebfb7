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
	const until = "nothing is delivered until then, or until heartbeat resume; after that, "
	const again = held + until + "the entry 0123456789ab waits to be delivered again (attempt 2, 1 more behind it)"
	const wakerGone = ", and the process that was to wake session s1 (process 99) is gone: the session asks after its next turn, if it still runs, so type something there, or start another"
	// given has an entry given back, for which somebody may wait.
	given := func(w *see.Waiter, s []see.Session) see.Facts {
		return facts(func(f *see.Facts) {
			f.Backoff, f.Redeliver, f.Backlog, f.Waiter, f.Sessions = backoff(3), inFlight(), waiting(2), w, s
		})
	}
	for name, c := range map[string]explained{
		"somebody waits": {given(waiter(machine.Alive), session()),
			see.BackingOff, again + ", and session s1 takes what is next within moments: process 99 waits in the background to wake it"},
		"perhaps somebody waits": {given(waiter(machine.Unknown), session(life(machine.Unknown))),
			see.BackingOff, again + " for process 99, which waited in the background to wake session s1: whether it still runs is not known"},
		"who waits is stopped": {given(stopped(), session()),
			see.BackingOff, again + ", and process 99, which is to wake session s1, is stopped, by SIGSTOP or Ctrl-Z: kill -CONT 99 has it go on"},
		"who waited is gone": {given(waiter(machine.Gone), session()),
			see.BackingOff, again + wakerGone},
		"who waited is gone, the session unknown": {given(waiter(machine.Gone), nil),
			see.BackingOff, again + wakerGone},
		"at work": {given(nil, session()),
			see.BackingOff, again + " for the next Stop of session s1 (process 42), last heard of at <-10>: it is at work on something else, or waits at its prompt"},
		"no session runs": {given(waiter(machine.Gone), session(life(machine.Gone))),
			see.BackingOff, again + ", and no session runs: start one; the last one, s1, is gone (process 42 has ended)"},
		"the session ended": {given(nil, session(ended(-1))),
			see.BackingOff, again + ", and no session runs: start one; the last one, s1, ended at <-1>"},
		"no session is known": {given(nil, nil),
			see.BackingOff, again + ", and no session has ever asked: start one, and see heartbeat doctor if it does not ask"},
		"a launcher sees to it": {facts(func(f *see.Facts) {
			f.Backoff, f.Redeliver, f.Backlog = backoff(3), inFlight(), waiting(2)
			f.Launcher = &see.Launcher{PID: 7, Doing: "resting until noon"}
		}), see.BackingOff, again + ", and the launcher, process 7, sees to the next session: resting until noon"},
		"once, and named": {facts(func(f *see.Facts) {
			f.Backoff, f.Backlog, f.Waiter = backoff(1), waiting(2), waiter(machine.Alive)
			f.Backoff.Named = true
		}), see.BackingOff, "backing off until <3> (overloaded: try later), just after the time that the error named: " + until + "2 entries wait, and session s1 takes what is next within moments: process 99 waits in the background to wake it"},
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
