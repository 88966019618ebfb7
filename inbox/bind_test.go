package inbox_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

func TestBind(t *testing.T) {
	box := newBox(t, "\n"+oldContent)
	deliver(t, box)
	before := inFlightFile(t, box)
	in(t, box, func(tx *inbox.Tx) {
		require.NoError(t, tx.Bind(inbox.Recipient{SessionID: "other", PromptID: "p\n2", Evidence: json.RawMessage(`{"bound":true}`)}))
	})
	want := before
	want.SessionID, want.PromptID, want.Evidence = "other", "p\n2", json.RawMessage(`{"bound":true}`)
	assert.Equal(t, want, inFlightFile(t, box), "all else is as it was")
	assert.Equal(t, &want, begin(t, open(t, box.Path())).InFlight())
	assert.Empty(t, events(t, box))
}

// The result names the session whose turn it was, and counts among that session's answers.
func TestAnswerOfABoundEntry(t *testing.T) {
	box := newBox(t, oldContent)
	deliver(t, box)
	in(t, box, func(tx *inbox.Tx) {
		require.NoError(t, tx.Bind(inbox.Recipient{SessionID: "other", PromptID: "p2"}))
		require.NoError(t, tx.Acknowledge("done"))
	})
	r := results(t, box)[0]
	assert.Equal(t, "other", r.SessionID)
	assert.Equal(t, "p2", r.PromptID)
	assert.Equal(t, 1, acknowledgedBy(t, box, "other"))
	assert.Zero(t, acknowledgedBy(t, box, "s"))
}

func TestBindRefuses(t *testing.T) {
	box := newBox(t, oldContent)
	tx := begin(t, box)
	assert.ErrorContains(t, tx.Bind(inbox.Recipient{SessionID: "s"}), "bind: nothing is in flight")
	require.NoError(t, tx.Close())

	deliver(t, box)
	before := inFlightFile(t, box)
	for name, evidence := range map[string]string{
		"no JSON": "{", "two values": "{}{}", "nested too deeply": strings.Repeat("[", 20000) + strings.Repeat("]", 20000),
	} {
		tx := begin(t, box)
		assert.ErrorContains(t, tx.Bind(inbox.Recipient{SessionID: "t", Evidence: json.RawMessage(evidence)}), "bind: the evidence is not JSON", name)
		assert.False(t, tx.Dirty(), name)
		assert.Equal(t, "s", tx.InFlight().SessionID, name)
		require.NoError(t, tx.Close())
	}
	assert.Equal(t, before, inFlightFile(t, box))
}

// An entry that is given back says why, and whether the delivery counts as an attempt.
func TestGiveBackForAReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason  string
		counted bool
		attempt int // of the next delivery
	}{
		"counted":     {"unknown: <é>", true, 2},
		"not counted": {"overloaded", false, 1},
		"no reason":   {"", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			id := deliver(t, box).EntryID
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack(c.reason, c.counted)) })
			at := noon
			assert.Equal(t, []inbox.Event{{
				At: noon, Event: inbox.EventRedelivered, EntryID: id, Session: "s", DeliveredAt: &at,
				Reason: c.reason, Attempt: c.attempt - 1, Uncounted: !c.counted,
			}}, events(t, box))
			assert.Nil(t, begin(t, box).InFlight())
			assert.EqualValues(t, 1, totals(t, box).Redelivered)
		})
		t.Run(name+", next", func(t *testing.T) {
			box := newBox(t, oldContent)
			deliver(t, box)
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack(c.reason, c.counted)) })
			e := deliver(t, box)
			assert.Equal(t, "one", e.Text)
			assert.Equal(t, c.attempt, e.Attempt)
		})
	}
	tx := begin(t, newBox(t, oldContent))
	assert.ErrorContains(t, tx.GiveBack("why", false), "give back: nothing is in flight")
}
