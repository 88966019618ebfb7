package see_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/agent"
	"heartbeat/internal/machine"
	"heartbeat/internal/see"
	"heartbeat/orchestrate"
)

// told are the kinds of what is wrong, in their order.
func told(all []see.Trouble) (kinds []see.Kind) {
	for _, t := range all {
		kinds = append(kinds, t.Kind)
	}
	return kinds
}

func TestTroubles(t *testing.T) {
	letters := outcomes.LetterCount{Open: map[inbox.Reason]int{inbox.ReasonOrphaned: 2}}
	for name, c := range map[string]struct {
		change func(f *see.Facts)
		kinds  []see.Kind
	}{
		"all is well": {func(*see.Facts) {}, nil},
		"it is at work": {func(f *see.Facts) {
			f.InFlight, f.Sessions, f.Client, f.Still.Since = inFlight(), session(), machine.Alive, at(-5)
		}, nil},
		"the model hangs": {func(f *see.Facts) {
			f.InFlight, f.Sessions, f.Client, f.Still.Since = inFlight(), session(), machine.Alive, at(-11)
		}, []see.Kind{see.KindStalled}},
		"one asks, and letters are open": {func(f *see.Facts) {
			f.InFlight, f.Sessions, f.Letters = inFlight(), session(asks), letters
		}, []see.Kind{see.KindQuestion, see.KindLetters}},
		"a run is stuck, and others work": {func(f *see.Facts) {
			f.InFlight, f.Sessions, f.Client = inFlight(), session(), machine.Alive
			f.Runs = []see.Run{runThat(orchestrate.Stuck), runThat(orchestrate.Asking), runThat(orchestrate.AtWork), runThat(orchestrate.Asleep)}
		}, []see.Kind{see.KindRunStuck, see.KindBreakpoint}},
		"a run asks, and nothing waits": {func(f *see.Facts) {
			f.Runs = []see.Run{runThat(orchestrate.Asking), runThat(orchestrate.Asleep)}
		}, []see.Kind{see.KindBreakpoint}},
		"delivery is paused": {func(f *see.Facts) {
			f.Backlog, f.Paused = waiting(2), &inbox.Pause{At: at(-3)}
		}, []see.Kind{see.KindPaused}},
		"a day is over": {func(f *see.Facts) {
			f.Backlog, f.Paused = waiting(2), &inbox.Pause{At: at(-3), Until: ptr(60), Reason: "9 of 9 USD " + inbox.LimitOfDay}
		}, []see.Kind{see.KindDayOver}},
		"a day is near its limit": {func(f *see.Facts) { f.DayNear = "today cost 42 of 50 USD" }, []see.Kind{see.KindDayNear}},
		"a limit is not held": {func(f *see.Facts) {
			f.Sessions = session(func(s *see.Session) { s.Uncounted = &inbox.Finding{At: at(-1), Text: "no transcript"} })
		}, []see.Kind{see.KindUncounted}},
		"sessions fail": {func(f *see.Facts) {
			f.Backlog = waiting(1)
			for range 3 {
				f.Sessions = append(f.Sessions, session(ended(-2))...)
			}
		}, []see.Kind{see.KindNoSession, see.KindFailing}},
		"the inbox was replaced, and nobody has looked": {func(f *see.Facts) {
			f.Anew = inbox.Replacement{At: at(-59), Why: "it is another file"}
		}, []see.Kind{see.KindReplaced}},
		"it was, long ago":       {func(f *see.Facts) { f.Anew.At = at(-61) }, nil},
		"it was, by another day": {func(f *see.Facts) { f.Anew.At = at(600) }, nil},
		"it is, and was before": {func(f *see.Facts) {
			f.Anew.At, f.Replaced, f.Backlog = at(-5), "it was rewritten", waiting(1)
		}, []see.Kind{see.KindReplaced}},
		"what was due is late": {func(f *see.Facts) { f.Scheduled = inbox.Schedule{Count: 1, Next: at(-3)} }, []see.Kind{see.KindOverdue}},
		"a consumer takes nothing": {func(f *see.Facts) {
			failure := func(since int) *outcomes.ConsumerFailure {
				return &outcomes.ConsumerFailure{Since: at(since), Patience: 10 * time.Minute, Error: "no\x1b[2J way"}
			}
			f.Consumers = []outcomes.Consumer{{Name: "mail", Failing: failure(-11)}, {Name: "chat", Failing: failure(-9)}, {Name: "well"}}
		}, []see.Kind{see.KindConsumer}},
		"nothing can be read": {func(f *see.Facts) { f.Unreadable = errors.New("not valid") }, []see.Kind{see.KindUnreadable}},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts(c.change)
			all := f.Troubles()
			assert.Equal(t, c.kinds, told(all))
			state, sentence := f.Explain()
			for i, of := range all {
				assert.NotEmpty(t, of.Text)
				assert.Contains(t, of.Do, "--inbox /w/inbox.jsonl")
				assert.Equal(t, i, slices.IndexFunc(all, func(o see.Trouble) bool { return o.Key == of.Key }), "it has a key of its own")
			}
			if see.UrgencyOf(state) != "" {
				require.NotEmpty(t, all)
				assert.Equal(t, sentence, all[0].Text, "why nothing moves is the most urgent of what is wrong")
			}
		})
	}
}

// The words of a trouble may change, as ages do; it stays the same one for who tells it once.
func TestTroubleKeepsItsKey(t *testing.T) {
	f := facts(func(f *see.Facts) { f.InFlight, f.Sessions = inFlight(), session(asks) })
	first := f.Troubles()[0]
	f.Now = f.Now.Add(time.Hour)
	f.InFlight, f.Backlog = nil, waiting(3)
	later := f.Troubles()[0]
	assert.Equal(t, first.Key, later.Key)
	assert.NotEqual(t, first.Text, later.Text)
}

// Where no session runs, what starts one is said; where none ever asked, what finds out why.
func TestWhatHelpsWithoutASession(t *testing.T) {
	do := func(change func(f *see.Facts)) string {
		f := facts(change)
		f.Backlog = waiting(1)
		return f.Troubles()[0].Do
	}
	assert.Equal(t, "heartbeat doctor --inbox /w/inbox.jsonl", do(func(*see.Facts) {}))
	assert.Equal(t, "heartbeat launch --inbox /w/inbox.jsonl -- claude 'Say ready.'", do(func(f *see.Facts) { f.EverAsked = true }))
	assert.Equal(t, "heartbeat launch --inbox /w/inbox.jsonl -- codex exec 'Say ready.'", do(func(f *see.Facts) {
		f.EverAsked, f.Sessions = true, session(ended(-1))
		f.Sessions[0].StartNote = agent.StartNote("/home/me/.codex/sessions/rollout-2026-03-04T12-00-00-01234567-89ab-cdef-0123-456789abcdef.jsonl", false)
	}))
	assert.Equal(t, "heartbeat doctor --inbox /w/inbox.jsonl", do(func(f *see.Facts) {
		f.EverAsked, f.GaveUp = true, &see.GaveUp{At: at(-1), Text: "hooks are off"}
	}))
	assert.Equal(t, `heartbeat status --inbox '/w/\u001b[31m/inbox.jsonl'`, do(func(f *see.Facts) { f.EverAsked, f.Inbox = true, "/w/\x1b[31m/inbox.jsonl" }))
}
