package see_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	"heartbeat/internal/see"
)

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
