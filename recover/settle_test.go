package recover_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

const (
	lineOne = "one"
	lineTwo = `{"prompt":"two","id":"2"}`
)

// found lists the states in which a launcher may find an inbox.
var found = map[string]func(t testing.TB, box *inbox.Inbox){
	"nothing in flight": func(t testing.TB, box *inbox.Inbox) {
		deliver(t, box, "s1")
		in(t, box, func(tx *inbox.Tx) error { return tx.Acknowledge("done") })
	},
	"live": live,
	"live, second attempt": func(t testing.TB, box *inbox.Inbox) {
		live(t, box)
		in(t, box, func(tx *inbox.Tx) error { return tx.GiveBack("", true) })
		deliver(t, box, "s2")
	},
	"live, third attempt": func(t testing.TB, box *inbox.Inbox) {
		live(t, box)
		for _, session := range []string{"s2", "s3"} {
			in(t, box, func(tx *inbox.Tx) error { return tx.GiveBack("", true) })
			deliver(t, box, session)
		}
	},
	"failed": func(t testing.TB, box *inbox.Inbox) {
		live(t, box)
		in(t, box, func(tx *inbox.Tx) error { return tx.In("s1").Fail("overloaded", "") })
	},
	"stale": func(t testing.TB, box *inbox.Inbox) {
		live(t, box)
		put(t, box, ".inbox-offset", "30")
	},
	"responded only": func(t testing.TB, box *inbox.Inbox) {
		deliver(t, box, "s1")
		in(t, box, func(tx *inbox.Tx) error { return tx.Acknowledge("done") })
		put(t, box, ".responded", "")
	},
	"detached": func(t testing.TB, box *inbox.Inbox) {
		live(t, box)
		require.NoError(t, os.WriteFile(box.Path(), []byte("new\n"), 0o600))
	},
	"a client's prompt, never handed to it": prompted,
	"of heartbeat-rs": func(t testing.TB, box *inbox.Inbox) {
		put(t, box, ".inbox-offset", "4")
		put(t, box, ".responded", "")
		put(t, box, ".in-flight", `{"entry_id":"x","start_offset":4,"end_offset":30,"raw_line":"{\"prompt\":\"two\",\"id\":\"2\"}","delivered_at":"2026-01-02T03:04:05Z"}`)
	},
}

// live leaves the second entry in flight.
func live(t testing.TB, box *inbox.Inbox) {
	t.Helper()
	deliver(t, box, "s1")
	in(t, box, func(tx *inbox.Tx) error { return tx.Acknowledge("done") })
	deliver(t, box, "s1")
}

// prompted leaves the second entry in flight, as the prompt of a client that is about to start.
func prompted(t testing.TB, box *inbox.Inbox) {
	t.Helper()
	deliver(t, box, "s1")
	in(t, box, func(tx *inbox.Tx) error { return tx.Acknowledge("done") })
	in(t, box, func(tx *inbox.Tx) error {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		evidence := recovery.Evidence{Prompt: recovery.Prompt{Prompted: true}, TranscriptSize: -1}
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s1", Evidence: evidence.Encode()})
		return err
	})
}

func put(t testing.TB, box *inbox.Inbox, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(box.Path()), name), []byte(content), 0o600))
}

// afterwards is a recovery's action and the situation that it leaves.
type afterwards struct {
	action recovery.Action
	situation
}

// expected holds the outcome for each state and each policy.
var expected = map[string]map[recovery.Policy]afterwards{
	"nothing in flight":    same(afterwards{recovery.None, situation{Cursor: "4", Results: 1, Next: "two", Attempt: 1}}),
	"responded only":       same(afterwards{recovery.None, situation{Cursor: "4", Results: 1, Next: "two", Attempt: 1}}),
	"stale":                same(afterwards{recovery.Cleared, situation{Cursor: "30", Results: 1, Next: "three", Attempt: 1}}),
	"live":                 orphan(1, 1, inbox.ReasonOrphaned),
	"live, second attempt": orphan(2, 1, inbox.ReasonOrphaned),
	"live, third attempt":  orphan(3, 1, inbox.ReasonOrphaned),
	"failed":               same(afterwards{recovery.Requeued, situation{Cursor: "4", Results: 1, Next: "two", Attempt: 1}}),
	"of heartbeat-rs":      orphan(1, 0, inbox.ReasonOrphaned),

	"a client's prompt, never handed to it": same(afterwards{recovery.Returned, situation{Cursor: "4", Results: 1, Next: "two", Attempt: 1}}),
	"detached": {
		recovery.DeadLetter: {recovery.DeadLettered, situation{
			Cursor: "0", DeadLetters: []dead{{lineTwo, inbox.ReasonOrphaned, 1}}, Results: 1, Next: "new", Attempt: 1,
		}},
		recovery.Retry: {recovery.Requeued, situation{Cursor: "0", Results: 1, Next: "two", Attempt: 2}},
		recovery.Drop:  {recovery.Dropped, situation{Cursor: "0", Results: 1, Next: "new", Attempt: 1}},
	},
}

func same(a afterwards) map[recovery.Policy]afterwards {
	return map[recovery.Policy]afterwards{recovery.DeadLetter: a, recovery.Retry: a, recovery.Drop: a}
}

// orphan returns the outcome for the second entry, in flight for the n-th time.
func orphan(n, results int, reason inbox.Reason) map[recovery.Policy]afterwards {
	passed := situation{Cursor: "30", Results: results, Next: "three", Attempt: 1}
	set := passed
	set.DeadLetters = []dead{{lineTwo, reason, n}}
	retried := afterwards{recovery.Requeued, situation{Cursor: "4", Results: results, Next: "two", Attempt: n + 1}}
	if n >= recovery.DefaultMaxAttempts {
		exhausted := set
		exhausted.DeadLetters = []dead{{lineTwo, inbox.ReasonExhausted, n}}
		retried = afterwards{recovery.DeadLettered, exhausted}
	}
	return map[recovery.Policy]afterwards{
		recovery.DeadLetter: {recovery.DeadLettered, set},
		recovery.Retry:      retried,
		recovery.Drop:       {recovery.Dropped, passed},
	}
}

func TestRecovery(t *testing.T) {
	for how, find := range found {
		for policy, want := range expected[how] {
			t.Run(how+" "+string(policy), func(t *testing.T) {
				box := newBox(t)
				find(t, box)
				report := run(t, box, recovery.Settings{Policy: policy}, recovery.Sight{})
				assert.Equal(t, want.action, report.Action)
				assert.Equal(t, want.situation, situationOf(t, box))
				before := files(t, box)

				again := run(t, box, recovery.Settings{Policy: policy}, recovery.Sight{})
				assert.Equal(t, recovery.None, again.Action)
				assert.Equal(t, want.situation, situationOf(t, box), "twice equals once")
				assert.Equal(t, before, files(t, box))
			})
		}
	}
	assert.Len(t, expected, len(found))
}

// The zero Settings behave like heartbeat-rs.
func TestDefaultPolicyDeadLetters(t *testing.T) {
	box := newBox(t)
	live(t, box)
	assert.Equal(t, recovery.DeadLettered, run(t, box, recovery.Settings{}, recovery.Sight{}).Action)
}

func TestMaxAttempts(t *testing.T) {
	for _, most := range []int{1, 2, 5} {
		box := newBox(t)
		o := recovery.Settings{Policy: recovery.Retry, MaxAttempts: most}
		for n := 1; n < most; n++ {
			deliver(t, box, "s")
			assert.Equal(t, recovery.Requeued, run(t, box, o, recovery.Sight{}).Action, "attempt %d of %d", n, most)
		}
		deliver(t, box, "s")
		report := run(t, box, o, recovery.Sight{})
		assert.Equal(t, recovery.DeadLettered, report.Action)
		assert.Equal(t, most, report.Attempt)
		assert.Equal(t, []dead{{lineOne, inbox.ReasonExhausted, most}}, situationOf(t, box).DeadLetters)
	}
}

// A letter whose attempts are used up says why the last one ended, if somebody knows.
func TestExhaustedSaysWhy(t *testing.T) {
	for reason, want := range map[inbox.Reason]string{"": "attempts exhausted", inbox.ReasonAsked: "attempts exhausted (asked a person)"} {
		box := newBox(t)
		deliver(t, box, "s")
		report := run(t, box, recovery.Settings{Policy: recovery.Retry, MaxAttempts: 1}, recovery.Sight{Reason: reason})
		require.Equal(t, recovery.DeadLettered, report.Action)
		letter := linesOf[inbox.DeadLetter](t, box.DeadLetterPath())[0]
		assert.Equal(t, want, letter.Reason.Why(letter.Failure))
	}
}

// An entry that provably never arrived is delivered again under every policy, as the same attempt.
func TestUnreachedIsReturned(t *testing.T) {
	for _, policy := range []recovery.Policy{recovery.DeadLetter, recovery.Retry, recovery.Drop} {
		for _, reached := range []bool{false, true} {
			box := newBox(t)
			prompted(t, box)
			in(t, box, (*inbox.Tx).HandedOver)
			output := recovery.Output{Known: true, Began: reached, Asked: reached}
			report := run(t, box, recovery.Settings{Policy: policy, MaxAttempts: 1}, recovery.Sight{Output: output})
			if reached {
				assert.NotEqual(t, recovery.Returned, report.Action)
				continue
			}
			assert.Equal(t, recovery.Returned, report.Action)
			assert.Equal(t, situation{Cursor: "4", Results: 1, Next: "two", Attempt: 1}, situationOf(t, box))
		}
	}
}

// The caller's reason counts, unless the entry has a failure or has used up its attempts.
func TestReason(t *testing.T) {
	for how, want := range map[string]inbox.Reason{"live": inbox.ReasonInterrupted, "failed": inbox.ReasonFailed} {
		box := newBox(t)
		found[how](t, box)
		report := run(t, box, recovery.Settings{}, recovery.Sight{Reason: inbox.ReasonInterrupted, Overcome: true})
		assert.Equal(t, want, report.Reason)
		assert.Equal(t, want, situationOf(t, box).DeadLetters[0].Reason)
	}
}

// An API error holds delivery back and is reported.
func TestFailureHolds(t *testing.T) {
	box := newBox(t)
	found["failed"](t, box)
	report := run(t, box, recovery.Settings{}, recovery.Sight{})
	assert.Equal(t, "overloaded", report.Failure.Error)
	assert.Equal(t, "the entry 2, attempt 1, will be delivered again, but not now: its turn ended in an error (overloaded), see heartbeat status", report.String())
	in(t, box, func(tx *inbox.Tx) error {
		backoff, err := tx.Holds().Backoff()
		assert.NotNil(t, backoff)
		return err
	})
}
