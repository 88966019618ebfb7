package recover_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/money/price"
	recovery "heartbeat/recover"
)

// A person is warned before the day's limit is reached, and no longer once it is.
func TestNearDay(t *testing.T) {
	usd := func(cents int64) price.Amount {
		return price.Amount{Nanos: cents * 10_000_000, Dollars: true, Requests: 1}
	}
	tokens := func(n int64) price.Amount { return price.Amount{Tokens: price.Tokens{Input: n}, Requests: 1} }
	day := price.Limits{Nanos: usd(1000).Nanos, Tokens: 5000}
	for want, today := range map[string]price.Amount{
		"today cost 8.00 of 10.00 USD": usd(800), "today cost 9.99 of 10.00 USD": usd(999), "today cost 4000 of 5000 tokens": tokens(4000),
	} {
		assert.Equal(t, want, recovery.NearDay(day, today))
	}
	for _, today := range []price.Amount{{}, usd(799), usd(1000), tokens(3999), tokens(5000)} {
		assert.Empty(t, recovery.NearDay(day, today), "%v", today)
	}
	assert.Empty(t, recovery.NearDay(price.Limits{}, usd(5)))
}
