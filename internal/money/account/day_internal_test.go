package account

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/money/price"
)

// Hooks in two time zones that charge by turns share one day, which ends once it is over in both
// zones. A clock that was further off begins a new day.
func TestDayOfTwoZones(t *testing.T) {
	one := price.Amount{Nanos: 1, Dollars: true}
	var a Account
	on := func(month time.Month, day int) int64 {
		return a.On(time.Date(2026, month, day, 12, 0, 0, 0, time.Local)).Nanos
	}
	for range 3 {
		a.add("2026-11-23", one, false)
		a.add("2026-11-22", one, false)
	}
	assert.EqualValues(t, 6, on(11, 22))
	assert.EqualValues(t, 6, on(11, 23))
	assert.Zero(t, on(11, 24))
	a.add("2026-11-24", one, false)
	assert.EqualValues(t, 1, on(11, 24))
	a.add("2026-02-01", one, false)
	assert.EqualValues(t, 1, on(2, 1))
	assert.Zero(t, on(11, 24))
}

// Where the date is a later one, too, what was spent counts until the day has ended in the zone that began it: what is
// spent meanwhile is added to that day.
func TestDayThatBeganFurtherWest(t *testing.T) {
	place := time.Local
	t.Cleanup(func() { time.Local = place })
	now := time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
	box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{Now: func() time.Time { return now }})
	require.NoError(t, err)
	var ends time.Time
	spend := func(hoursEast int, nanos int64) int64 {
		time.Local = time.FixedZone("", hoursEast*60*60)
		tx, err := box.Begin(t.Context())
		require.NoError(t, err)
		Of(tx).Charge(Uncharged{Line: price.Line{Price: price.Price{Amount: price.Amount{Nanos: nanos, Dollars: true}}}})
		sum := Of(tx).Today().Nanos
		assert.Equal(t, ends, Of(tx).Midnight(), "a pause would outlast the day")
		require.NoError(t, tx.Commit())
		require.NoError(t, tx.Close())
		return sum
	}
	ends = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	assert.EqualValues(t, 1, spend(0, 1))
	assert.EqualValues(t, 3, spend(13, 2))
	assert.EqualValues(t, 7, spend(0, 4))
	now, ends = now.Add(4*time.Hour), ends.Add(11*time.Hour)
	assert.EqualValues(t, 8, spend(13, 8))
	assert.EqualValues(t, 24, spend(0, 16))
}
