package inbox

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/price"
)

var fullAccount = Account{
	Day: "2026-11-22", dayEnds: 5,
	Today: price.Amount{Nanos: 1, Dollars: true}, Total: price.Amount{Tokens: price.Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, Requests: 5},
	Sessions: []SessionAccount{{
		ID: "s 1\"", Charged: price.Amount{Nanos: 7, Dollars: true, Unpriced: 8, Said: 9}, Closed: true,
		Spans: []Span{
			{From: -1, history: true},
			{EntryID: "e", ID: "an id with blanks \x01", Start: 11, FirstSeq: 12, DeliveredSeq: 13, Attempt: 14, From: 15, since: 16, mark: 17, turned: true},
			{From: 18, since: 19},
		},
		Late: []Span{{From: 5, mark: -1}},
	}},
}

func TestAnAccountIsReadAsItWasWritten(t *testing.T) {
	got, err := decodeAccount(fullAccount.encode())
	require.NoError(t, err)
	assert.Equal(t, fullAccount.Sessions, got.Sessions)
	assert.Equal(t, fullAccount.encode(), got.encode())
	for _, bad := range []string{
		`[]`, `{"today":"x"}`, `{"total":"1 2"}`, `{"outside":"-5 0 0 0 0 0"}`, `{"sessions":[1]}`, `{"sessions":[{"session_id":"s"}]}`,
		`{"sessions":[{"session_id":"s","spans":["0 0 0"]}]}`, `{"sessions":[{"session_id":"s","spans":["0 0 x -"]}]}`, `{"sessions":[{"session_id":"s","spans":[""]}]}`,
	} {
		got, err := decodeAccount([]byte(bad))
		assert.Error(t, err, bad)
		assert.Equal(t, new(Account), got, bad)
	}
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
		r := Reading{Session: "s", Spent: price.Amount{Nanos: 5, Dollars: true}}
		for i := range a.Sessions {
			a.Sessions[i].uncharged(&r)
		}
	})
}
