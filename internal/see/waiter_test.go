package see_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/see"
	recovery "heartbeat/recover"
)

// waiter waits in the background to wake session s1.
func waiter(l machine.Life) *see.Waiter {
	return &see.Waiter{Waiter: inbox.Waiter{SessionID: "s1", Process: inbox.Process{PID: 99}, Since: at(-3)}, Life: l}
}

// stopped is a waiter that got SIGSTOP.
func stopped() *see.Waiter {
	w := waiter(machine.Alive)
	w.Stopped = true
	return w
}

// refused is a session that runs under -p.
func refused(s *see.Session) {
	s.Failure = &inbox.Failure{Error: "rewake", Message: "--rewake needs an interactive session", At: at(-4)}
}

func TestExplainAnIdleSession(t *testing.T) {
	const soon = "session s1 takes what is next within moments: process 99 waits in the background to wake it"
	const gone = "the process that was to wake session s1 (process 99) is gone: the session asks after its next turn, if it still runs, so type something there, or start another"
	const refuses = "session s1 could not be woken at <-4>, since it ends with its turn (under -p, or driven by a program): start an interactive one, or wire the hook without --rewake"
	const stops = "process 99, which is to wake session s1, is stopped, by SIGSTOP or Ctrl-Z: kill -CONT 99 has it go on"
	for name, c := range map[string]explained{
		"empty": {facts(func(f *see.Facts) { f.Waiter, f.Sessions, f.Asked = waiter(machine.Alive), session(), ptr(-8) }),
			see.Empty, "empty: nothing is queued, and the last entry was answered at <-8>; session s1 is idle, and the next entry wakes it"},
		"empty, of a session that told nothing of itself": {facts(func(f *see.Facts) { f.Waiter = waiter(machine.Alive) }),
			see.Empty, "empty: nothing is queued; session s1 is idle, and the next entry wakes it"},
		"empty, the process gone": {facts(func(f *see.Facts) { f.Waiter, f.Sessions = waiter(machine.Gone), session() }),
			see.Empty, "empty: nothing is queued"},
		"empty, the process unknown": {facts(func(f *see.Facts) { f.Waiter, f.Sessions = waiter(machine.Unknown), session() }),
			see.Empty, "empty: nothing is queued"},
		"empty, the session ended": {facts(func(f *see.Facts) { f.Waiter, f.Sessions = waiter(machine.Alive), session(ended(-1)) }),
			see.Empty, "empty: nothing is queued"},
		"not there yet": {facts(func(f *see.Facts) { f.Exists, f.Waiter = false, waiter(machine.Alive) }),
			see.NoInbox, "/w/inbox.jsonl is not there yet: the first entry creates it; session s1 is idle, and the next entry wakes it"},
		"gone": {facts(func(f *see.Facts) { f.Exists, f.Cursor, f.Waiter = false, 12, waiter(machine.Alive) }),
			see.NoInbox, "/w/inbox.jsonl is gone, 12 B of it were settled: the next entry creates it again; session s1 is idle, and the next entry wakes it"},
		"scheduled": {facts(func(f *see.Facts) {
			f.Scheduled, f.Waiter = inbox.Schedule{Count: 1, Next: at(9)}, waiter(machine.Alive)
		}),
			see.Scheduled, "nothing is queued: a scheduled entry comes at <9>; session s1 is idle, and the next entry wakes it"},
		"torn": {facts(func(f *see.Facts) {
			f.Backlog, f.Waiter = inbox.Backlog{Entries: 1, Bytes: 3, Torn: true}, waiter(machine.Alive)
		}), see.Torn, "the last line has no newline, and was written <-1> (1m ago): it is an entry once the hook in the background has seen it stand still, or its writer ends it"},

		"entries wait, the process gone, and a launcher sees to it": {facts(func(f *see.Facts) {
			f.Waiter, f.Backlog, f.Sessions = waiter(machine.Gone), waiting(2), session()
			f.Launcher = &see.Launcher{PID: 7, Doing: "it starts a session, after 1 session without an answer"}
		}), see.Launching, "2 entries wait, and the launcher, process 7, sees to the next session: it starts a session, after 1 session without an answer"},
		"entries wait, the session ended, and a launcher sees to it": {facts(func(f *see.Facts) {
			f.Backlog, f.Sessions, f.Launcher = waiting(1), session(ended(-1)), &see.Launcher{PID: 7}
		}), see.Launching, "1 entry waits, and the launcher, process 7, sees to the next session"},
		"entries wait": {facts(func(f *see.Facts) { f.Waiter, f.Backlog, f.Sessions = waiter(machine.Alive), waiting(2), session() }),
			see.Waking, "2 entries wait, and " + soon},
		"empty, the process stopped": {facts(func(f *see.Facts) { f.Waiter, f.Sessions = stopped(), session() }),
			see.Empty, "empty: nothing is queued; " + stops},
		"entries wait, the process stopped": {facts(func(f *see.Facts) { f.Waiter, f.Backlog, f.Sessions = stopped(), waiting(2), session() }),
			see.NoWaker, "2 entries wait, and " + stops},
		"entries wait, after an error and a question": {facts(func(f *see.Facts) {
			f.Waiter, f.Backlog = waiter(machine.Alive), waiting(1)
			f.Sessions = session(asks, func(s *see.Session) { s.Failure = failed(-4) })
		}), see.Waking, "1 entry waits, and " + soon},
		"entries wait, and cannot be handed over": {facts(func(f *see.Facts) {
			f.Waiter, f.Backlog = waiter(machine.Alive), waiting(1)
			f.Sessions = session(func(s *see.Session) {
				s.Failure = &inbox.Failure{Error: recovery.HookError, Message: "write it to a file: no", At: at(-2)}
			})
		}), see.SessionDown, "1 entry waits, and process 99, which is to wake session s1, met an error at <-2> (write it to a file: no): it tries again, within a minute once that is mended"},
		"entries wait, and an error of the hook before": {facts(func(f *see.Facts) {
			f.Waiter, f.Backlog = waiter(machine.Alive), waiting(1)
			f.Sessions = session(func(s *see.Session) { s.Failure = &inbox.Failure{Error: recovery.HookError, Message: "no", At: at(-4)} })
		}), see.Waking, "1 entry waits, and " + soon},
		"given back": {facts(func(f *see.Facts) { f.Waiter, f.Redeliver, f.Backlog = waiter(machine.Alive), inFlight(), waiting(1) }),
			see.Waking, "the entry 0123456789ab waits to be delivered again (attempt 2), and " + soon},
		"entries wait, the process unknown": {facts(func(f *see.Facts) { f.Waiter, f.Backlog = waiter(machine.Unknown), waiting(2) }),
			see.SessionBusy, "2 entries wait for process 99, which waited in the background to wake session s1: whether it still runs is not known"},
		"entries wait, the session ended": {facts(func(f *see.Facts) {
			f.Waiter, f.Backlog, f.Sessions = waiter(machine.Alive), waiting(1), session(ended(-1))
		}),
			see.NoSession, "1 entry waits, and no session runs: start one; the last one, s1, ended at <-1>"},
		"replaced": {facts(func(f *see.Facts) {
			f.Replaced, f.Waiter, f.Backlog = "it is another file", waiter(machine.Alive), waiting(1)
		}), see.Replaced, "the inbox was truncated or replaced (it is another file), and is read from its start: 1 entry waits, and " + soon},

		"the process is gone": {facts(func(f *see.Facts) { f.Waiter, f.Backlog, f.Sessions = waiter(machine.Gone), waiting(1), session() }),
			see.NoWaker, "1 entry waits, and " + gone},
		"the process is gone, the session unknown": {facts(func(f *see.Facts) { f.Waiter, f.Backlog = waiter(machine.Gone), waiting(2) }),
			see.NoWaker, "2 entries wait, and " + gone},
		"the process is gone with its session": {facts(func(f *see.Facts) {
			f.Waiter, f.Backlog, f.Sessions = waiter(machine.Gone), waiting(1), session(life(machine.Gone))
		}), see.NoSession, "1 entry waits, and no session runs: start one; the last one, s1, is gone (process 42 has ended)"},
		"the process is gone, and another session runs": {facts(func(f *see.Facts) {
			f.Waiter, f.Backlog, f.Sessions = waiter(machine.Gone), waiting(1), session(func(s *see.Session) { s.ID = "s2" })
		}), see.SessionBusy, "1 entry waits for the next Stop of session s2 (process 42), last heard of at <-10>: it is at work on something else, or waits at its prompt"},
		"the process is gone with the machine": {facts(func(f *see.Facts) { f.Waiter, f.Backlog, f.EverAsked = waiter(machine.Rebooted), waiting(1), true }),
			see.NoSession, "1 entry waits, and no session is known: if one runs, its next Stop goes on, or else start one"},

		"refused": {facts(func(f *see.Facts) { f.Backlog, f.Sessions = waiting(1), session(refused) }),
			see.SessionDown, "1 entry waits, and " + refuses},
		"refused, and ended": {facts(func(f *see.Facts) { f.Backlog, f.Sessions = waiting(1), session(refused, ended(-3)) }),
			see.SessionDown, "1 entry waits, and " + refuses},
		"refused, and prompted": {facts(func(f *see.Facts) {
			f.Backlog, f.Sessions = waiting(1), session(refused, func(s *see.Session) { s.PromptedAt = ptr(-1) })
		}), see.SessionBusy, "1 entry waits for the next Stop of session s1 (process 42), last heard of at <-1>: it is at work on something else, or waits at its prompt"},
	} {
		t.Run(name, c.check)
	}
}

// woken is an entry that was handed over to wake its session.
func woken(f *see.Facts) { f.InFlight, f.Woken, f.Client = inFlight(), true, machine.Alive }

func TestExplainAWokenSession(t *testing.T) {
	const decides = "the next session, or heartbeat recover, decides about it"
	const takes = "to take up the entry 0123456789ab, handed over at <-5> (5m ago) to wake it, attempt 1: if it never does, the session's next turn or end decides about the entry"
	for name, c := range map[string]explained{
		"not taken up": {facts(func(f *see.Facts) { woken(f); f.Sessions = session() }),
			see.Waking, "waiting for session s1 " + takes},
		"not taken up, the client unknown": {facts(func(f *see.Facts) { woken(f); f.Client = machine.Unknown }),
			see.Waking, "waiting for session s1 " + takes},
		"not taken up, and another turn failed": {facts(func(f *see.Facts) {
			woken(f)
			f.Sessions, f.InFlight.Failure = session(), failed(-1)
			f.Backoff = &inbox.Backoff{Until: at(3), Failure: failed(-1)}
		}), see.Waking, "waiting for session s1 " + takes + "; delivery is backing off until <3> (overloaded: try later)"},
		"not taken up, and the client has another session": {facts(func(f *see.Facts) { woken(f); f.Sessions = session(ended(-1)) }),
			see.Waking, "waiting for the client of session s1 " + takes},
		"not taken up, and resumed by the same client": {facts(func(f *see.Facts) {
			woken(f)
			f.Sessions = session(func(s *see.Session) { s.StartedAt = ptr(-1) })
		}), see.Waking, "waiting for session s1 " + takes},
		"not taken up by a client that is gone": {facts(func(f *see.Facts) { woken(f); f.Client = machine.Gone }),
			see.Orphaned, "the entry 0123456789ab, delivered at <-5>, was in flight when session s1 died: " + decides},
		"not taken up, and resumed by another client": {facts(func(f *see.Facts) {
			woken(f)
			f.Client, f.Sessions = machine.Gone, session(func(s *see.Session) { s.StartedAt = ptr(-1) })
		}), see.Orphaned, "the entry 0123456789ab, delivered at <-5>, was in flight when session s1 died: " + decides},
		"taken up": {facts(func(f *see.Facts) { woken(f); f.Bound = true }),
			see.Answering, "waiting for an answer to the entry 0123456789ab since <-5> (5m ago), attempt 1: session s1 runs"},
		"taken up by a session that ended": {facts(func(f *see.Facts) { woken(f); f.Bound, f.Client, f.Sessions = true, machine.Gone, session(ended(-1)) }),
			see.Orphaned, "the entry 0123456789ab was in flight when session s1 ended at <-1>: " + decides},
		"the machine went down": {facts(func(f *see.Facts) { woken(f); f.Bound, f.Client = true, machine.Rebooted }),
			see.Orphaned, "the entry 0123456789ab, delivered at <-5>, was in flight when the machine went down, with session s1: " + decides},
	} {
		t.Run(name, c.check)
	}
}

func asks(s *see.Session) {
	s.Asks = &inbox.Question{At: at(-1), Kind: "permission_prompt", Text: "Claude needs\nyour permission"}
}

func TestExplainAQuestion(t *testing.T) {
	const asked = "session s1 waits for a person: permission_prompt: Claude needs your permission (since <-1>, and no turn of it has ended since): unless somebody has answered, "
	for name, c := range map[string]explained{
		"in flight": {facts(func(f *see.Facts) { f.InFlight, f.Sessions, f.Backlog = inFlight(), session(asks), waiting(2) }),
			see.Person, asked + "the entry 0123456789ab, in flight since <-5> (5m ago), waits behind that"},
		"in flight, not taken up": {facts(func(f *see.Facts) { woken(f); f.Sessions = session(asks) }),
			see.Person, asked + "the entry 0123456789ab, in flight since <-5> (5m ago), waits behind that"},
		"in flight, paused": {facts(func(f *see.Facts) {
			f.InFlight, f.Sessions, f.Paused = inFlight(), session(asks), &inbox.Pause{At: at(-2)}
		}),
			see.Person, asked + "the entry 0123456789ab, in flight since <-5> (5m ago), waits behind that; delivery is paused since <-2>"},
		"in flight, of a dead session": {facts(func(f *see.Facts) { f.InFlight, f.Sessions = inFlight(), session(asks, life(machine.Gone)) }),
			see.Orphaned, "the entry 0123456789ab, delivered at <-5>, was in flight when session s1 died: the next session's Stop, or heartbeat recover, decides about it"},
		"in flight in another session": {facts(func(f *see.Facts) {
			f.InFlight, f.Sessions = inFlight(), append(session(asks, func(s *see.Session) { s.ID = "s2" }), session()...)
			f.Sessions[0].Asks.Text = ""
		}), see.Answering, "waiting for an answer to the entry 0123456789ab since <-5> (5m ago), attempt 1: session s1 runs"},
		"entries wait": {facts(func(f *see.Facts) { f.Sessions, f.Backlog = session(asks), waiting(2) }),
			see.Person, asked + "2 entries wait behind that"},
		"entries wait, of a session that may be gone": {facts(func(f *see.Facts) { f.Sessions, f.Backlog = session(asks, life(machine.Unknown)), waiting(2) }),
			see.Person, asked + "2 entries wait behind that"},
		"given back, and backing off": {facts(func(f *see.Facts) {
			f.Sessions, f.Redeliver, f.Backlog, f.Backoff = session(asks), inFlight(), waiting(1), backoff(1)
		}), see.Person, asked + "the entry 0123456789ab waits to be delivered again (attempt 2) behind that; delivery is backing off until <3> (overloaded: try later)"},
		"nothing waits": {facts(func(f *see.Facts) { f.Sessions = session(asks) }), see.Empty, "empty: nothing is queued"},
		"a dead session": {facts(func(f *see.Facts) { f.Sessions, f.Backlog = session(asks, life(machine.Gone)), waiting(2) }),
			see.NoSession, "2 entries wait, and no session runs: start one; the last one, s1, is gone (process 42 has ended)"},
	} {
		t.Run(name, c.check)
	}
}

func TestAsking(t *testing.T) {
	other := func(s *see.Session) { s.ID = "s2" }
	assert.Nil(t, facts(func(f *see.Facts) { f.Sessions = session() }).Asking())
	assert.Nil(t, facts(func(f *see.Facts) { f.Sessions = session(asks, life(machine.Gone)) }).Asking())
	assert.Nil(t, facts(func(f *see.Facts) { f.Sessions = session(asks, ended(-1)) }).Asking())
	assert.Equal(t, "s2", facts(func(f *see.Facts) { f.Sessions = append(session(), session(asks, other)...) }).Asking().ID)
}
