package inbox_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// Senders may name their metadata as they like: the text they sent is delivered.
func TestMetadataThatLooksLikeAPutOffEntry(t *testing.T) {
	now := clockOf(t, newBox(t, ""))
	now.send(t, inbox.Message{
		ID: "job", Text: "what was sent", NotBefore: noon.Add(time.Hour),
		Metadata: map[string]any{"put_off": map[string]any{"attempts": 7}, "raw_line": "something else"},
	})
	now.set(noon.Add(time.Hour))
	d := deliver(t, now.box)
	assert.Equal(t, []any{"job", "what was sent", 1}, []any{d.ID, d.Text, d.Attempt})
}

// Two entries with the same text stay two, even while both are put off to one time.
func TestPutOffTwiceTheSameText(t *testing.T) {
	now := clockOf(t, newBox(t, "x\nx\n"))
	for range 2 {
		deliver(t, now.box)
		in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.PutOff("not now", noon.Add(time.Hour))) })
	}
	now.set(noon.Add(time.Hour))
	assert.Equal(t, []string{"x", "x"}, drain(t, now.box))
	assert.Empty(t, scheduledIDs(t, now.box))
}

// A forged line cannot make an entry count less than one attempt.
func TestPutOffWithForgedAttempts(t *testing.T) {
	for _, attempts := range []int64{-5, 0, math.MaxInt64} {
		now := clockOf(t, newBox(t, ""))
		write(t, beside(now.box, ".scheduled.jsonl"), fmt.Sprintf(
			`{"not_before":"2020-01-01T00:00:00Z","raw_line":"x","put_off":{"attempts":%d,"took_ns":%d}}`+"\n", attempts, int64(math.MaxInt64)))
		d := deliver(t, now.box)
		assert.Equal(t, "x", d.Text)
		assert.GreaterOrEqual(t, d.Attempt, 1, attempts)
	}
}

// A verdict that somebody wrote into .in-flight does not count as the agent's.
func TestAVerdictWrittenByHandIsNotOne(t *testing.T) {
	box := clockOf(t, newBox(t, "one\n")).box
	deliver(t, box)
	say(t, box, inbox.Verdict{Kind: inbox.VerdictFailed, Text: "no"})
	path := beside(box, ".in-flight")
	before := read(t, path)
	require.Contains(t, before, `"verdict":"failed"`)
	write(t, path, strings.Replace(before, `"verdict":"failed"`, `"verdict":"done"`, 1))
	in(t, box, func(tx *inbox.Tx) { assert.Equal(t, inbox.VerdictFailed, tx.InFlight().Verdict.Kind) })
}

// A dead letter says how often its entry was delivered, also if the last of that was before it was put off. What is sent
// later begins anew, even if it is the same line.
func TestSetAsideAfterItWasPutOff(t *testing.T) {
	for how, setAside := range map[string]func(tx *inbox.Tx, e inbox.Entry) error{
		"canceled": func(tx *inbox.Tx, e inbox.Entry) error { _, err := tx.Cancel(e.EntryID, e.Start); return err },
		"refused":  func(tx *inbox.Tx, e inbox.Entry) error { return tx.Refuse(e, inbox.ReasonLimits, "too much") },
	} {
		t.Run(how, func(t *testing.T) {
			now := clockOf(t, newBox(t, "one\n"))
			deliver(t, now.box)
			in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.PutOff("not now", noon.Add(time.Hour))) })
			now.set(noon.Add(time.Hour))
			in(t, now.box, func(tx *inbox.Tx) {
				e, err := tx.Next(inbox.Mark{})
				require.NoError(t, err)
				require.NoError(t, setAside(tx, e))
			})
			letters := deadLetters(t, now.box)
			require.Len(t, letters, 1)
			assert.Equal(t, 1, letters[0].Attempts)
			assert.EqualValues(t, 1, letters[0].FirstSeq)
			assert.Nil(t, letters[0].DeliveredAt)
			echo(t, now.box.Path(), "one\n")
			assert.Equal(t, 1, deliver(t, now.box).Attempt)
		})
	}
}

func TestDeliveryDiedAfterItWasPutOff(t *testing.T) {
	line := strings.Repeat("x", 3<<19) + "\n"
	now := clockOf(t, newBox(t, line))
	deliver(t, now.box)
	in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.PutOff("not now", noon.Add(time.Hour))) })
	now.set(noon.Add(time.Hour))
	require.NoError(t, now.box.Promote(t.Context()))
	end := len(read(t, now.box.Path()))
	write(t, beside(now.box, ".inbox-tries"), fmt.Sprintf("0 %d %d 3\n", end-len(line), end))
	in(t, now.box, func(tx *inbox.Tx) {
		_, err := tx.Next(inbox.Mark{})
		require.ErrorIs(t, err, inbox.ErrEmpty)
	})
	letters := deadLetters(t, now.box)
	require.Len(t, letters, 1)
	assert.Equal(t, inbox.ReasonDied, letters[0].Reason)
	assert.Equal(t, 1, letters[0].Attempts)
}

// An entry in flight survives a replaced inbox, even if it is then put off.
func TestPutOffOfADetachedEntry(t *testing.T) {
	now := clockOf(t, newBox(t, "one\n"))
	deliver(t, now.box)
	replace(t, now.box.Path(), "two\n")
	in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.PutOff("not now", noon.Add(time.Hour))) })
	now.set(noon.Add(time.Hour))
	assert.ElementsMatch(t, []string{"one", "two"}, drain(t, now.box))
}

// The limits of attempts hold however often and in whatever way an entry comes back.
func TestPutOffAfterItWasGivenBack(t *testing.T) {
	now := clockOf(t, newBox(t, "one\n"))
	deliver(t, now.box)
	in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	assert.Equal(t, 2, deliver(t, now.box).Attempt)
	in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.PutOff("not now", noon.Add(time.Hour))) })
	assert.Empty(t, waitingIDs(t, now.box), "it is in one place only")
	now.set(noon.Add(time.Hour))
	assert.Equal(t, 3, deliver(t, now.box).Attempt)
	in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	assert.Equal(t, 4, deliver(t, now.box).Attempt)
}

// Sixty-five entries come back at once, and none is lost.
func TestManyThatWerePutOff(t *testing.T) {
	t.Parallel()
	const many = 65
	content, want := "", []string(nil)
	for n := range many {
		want = append(want, fmt.Sprint("text ", n))
		content += want[n] + "\n"
	}
	now := clockOf(t, newBox(t, content))
	for range many {
		deliver(t, now.box)
		in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.PutOff("not now", noon.Add(time.Hour))) })
	}
	now.set(noon.Add(time.Hour))
	assert.ElementsMatch(t, want, drain(t, now.box))
	assert.Empty(t, scheduledIDs(t, now.box))
}

// An entry keeps its name while it is put off: sending it again sends nothing.
func TestSentAgainWhileItIsPutOff(t *testing.T) {
	now := clockOf(t, newBox(t, ""))
	now.send(t, inbox.Message{ID: "job", Text: "x"})
	deliver(t, now.box)
	in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.PutOff("not now", noon.Add(time.Hour))) })
	r := now.send(t, inbox.Message{ID: "job", Text: "x"})
	assert.False(t, r.Appended, "%+v", r)
	now.set(noon.Add(time.Hour))
	assert.Equal(t, []string{"x"}, drain(t, now.box))
}
