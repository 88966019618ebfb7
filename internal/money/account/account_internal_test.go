package account

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/price"
)

var fullAccount = Account{
	Day: "2026-11-22", dayEnds: 5,
	Today: price.Amount{Nanos: 1, Dollars: true}, Total: price.Amount{Tokens: price.Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, Requests: 5},
	Sessions: []SessionTurns{{
		ID: "s 1\"", Transcript: "/t é.jsonl", Stated: 7,
		Turns: []Turn{
			{From: nowhere},
			{Charged: price.Charged{EntryID: "e", ID: "an id with blanks \x01", Start: 11, FirstSeq: 12, DeliveredSeq: 13, Attempt: 14}, From: 15, Since: 16},
			{From: 18, Since: 19},
		},
	}},
}

func TestAnAccountIsReadAsItWasWritten(t *testing.T) {
	got, err := decodeAccount(fullAccount.encode())
	require.NoError(t, err)
	assert.Equal(t, fullAccount.Sessions, got.Sessions)
	assert.Equal(t, fullAccount.encode(), got.encode())
	for _, bad := range []string{
		`[]`, `{"today":"x"}`, `{"total":"1 2"}`, `{"outside":"-5 0 0 0 0 0"}`, `{"sessions":[1]}`,
		`{"sessions":[{"session_id":"s","spans":["0 0 0"]}]}`, `{"sessions":[{"session_id":"s","spans":["0 0 x -"]}]}`, `{"sessions":[{"session_id":"s","spans":[""]}]}`,
	} {
		got, err := decodeAccount([]byte(bad))
		assert.Error(t, err, bad)
		assert.Equal(t, new(Account), got, bad)
	}
}

// An account of an earlier release is still read: how much of a count was charged, where a found span begins, and
// spending without a culprit. An ended session counted as charged.
func TestAnAccountOfAnEarlierRelease(t *testing.T) {
	a, err := decodeAccount([]byte(`{"total":"5 1 0 0 0 1","sessions":[` +
		`{"session_id":"a","charged":"5 1 0 0 0 1","spans":["0 0 0 -h","40 3 70 t 1 2 3 1 e id","-1 0 0 -"]},{"session_id":"b","closed":true,"spans":["9 0 0 -"],"late":["1 2 3 -"]}]}`))
	require.NoError(t, err)
	assert.Equal(t, []SessionTurns{{ID: "a", Turns: []Turn{
		{Charged: price.Charged{EntryID: "e", ID: "id", Start: 1, FirstSeq: 2, DeliveredSeq: 3, Attempt: 1}, From: 70}, {From: nowhere},
	}}}, a.Sessions)
}

func FuzzAccount(f *testing.F) {
	f.Add(fullAccount.encode())
	f.Add([]byte(`{"sessions":[{"session_id":"s","spans":["0 0 0 -"]}]}`))
	f.Fuzz(func(t *testing.T, record []byte) {
		a, err := decodeAccount(record)
		if err != nil {
			return
		}
		again, err := decodeAccount(a.encode())
		require.NoError(t, err, "%s", a.encode())
		assert.Equal(t, a.encode(), again.encode())
	})
}
