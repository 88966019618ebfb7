package session

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/money/price"
)

// What the meter told is the cost, unless the client has said it.
func TestSpentInTerminal(t *testing.T) {
	t.Parallel()
	s := &folder.State{}
	spentInTerminal(s, price.Price{Amount: price.Amount{Tokens: price.Tokens{Input: 5}, Requests: 1}})
	assert.Nil(t, s.CostUSD, "no dollars are not 0")
	spentInTerminal(s, price.Price{Amount: price.Amount{Nanos: 2_500_000_000, Dollars: true}})
	require.NotNil(t, s.CostUSD)
	assert.InDelta(t, 2.5, *s.CostUSD, 1e-9)
	spentInTerminal(s, price.Price{Amount: price.Amount{Nanos: 1, Dollars: true}})
	assert.InDelta(t, 2.5, *s.CostUSD, 1e-9)
}
