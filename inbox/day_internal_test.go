package inbox

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/money/price"
)

// Hooks in two time zones that charge by turns share one day, which ends once it is over in both
// zones. A clock that was further off begins a new day.
func TestDayOfTwoZones(t *testing.T) {
	one := price.Amount{Nanos: 1, Dollars: true}
	var a Account
	for range 3 {
		a.add("2026-11-23", one, false)
		a.add("2026-11-22", one, false)
	}
	assert.EqualValues(t, 6, a.On("2026-11-22").Nanos)
	assert.EqualValues(t, 6, a.On("2026-11-23").Nanos)
	assert.Zero(t, a.On("2026-11-24"))
	a.add("2026-11-24", one, false)
	assert.EqualValues(t, 1, a.On("2026-11-24").Nanos)
	a.add("2026-02-01", one, false)
	assert.EqualValues(t, 1, a.On("2026-02-01").Nanos)
	assert.Zero(t, a.On("2026-11-24"))
}
