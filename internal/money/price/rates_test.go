package price_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/price"
)

func TestEveryKnownModelHasRates(t *testing.T) {
	for _, model := range price.Known() {
		r := price.BuiltIn(model)
		require.NotNil(t, r, model)
		assert.Positive(t, r.Input, model)
		assert.Greater(t, r.Output, r.Input, model)
		assert.Less(t, r.CacheRead, r.Input, model)
	}
}

// A model is known by any of the names that it goes by, and no other is taken for it.
func TestNamesOfModels(t *testing.T) {
	of := func(input, output float64) *price.Rates {
		r := price.BuiltIn("claude-opus-4-6")
		assert.Equal(t, []float64{input, output}, []float64{r.Input, r.Output})
		return r
	}(5, 25)
	for _, name := range []string{
		"claude-opus-4-6-20260115", "claude-opus-4-6[1m]", "us.anthropic.claude-opus-4-6-v1", "eu.anthropic.claude-opus-4-6-20260115-v1:0",
		"claude-opus-4-6@20260115", "anthropic/claude-opus-4-6", " Claude-Opus-4-6 ", "claude-opus-4-6-latest",
	} {
		assert.Equal(t, of, price.BuiltIn(name), name)
	}
	assert.NotNil(t, price.BuiltIn("gpt-5-2026-03-01"))
	for _, name := range []string{"", "claude", "claude-opus", "claude-opus-4-60", "claude-opus-9", "my-claude-opus-4-6", "claude-opus-4-6-turbo", "gpt", "[", "@", "-v", "-20260101"} {
		assert.Nil(t, price.BuiltIn(name), name)
	}
}

func TestRates(t *testing.T) {
	opus, haiku := price.BuiltIn("claude-opus-5-5"), price.BuiltIn("claude-haiku-5-5")
	for _, c := range []struct {
		of   *price.Rates
		u    price.Usage
		want int64
	}{
		{opus, price.Usage{}, 0},
		{opus, price.Usage{Tokens: price.Tokens{Input: 1_000_000}}, 4_000_000_000},
		{opus, price.Usage{Tokens: price.Tokens{CacheWrite: 1000}, CacheWrite1h: 5000}, 8_000_000},
		{opus, price.Usage{Tokens: price.Tokens{CacheWrite: 1000}, CacheWrite1h: -5}, 5_000_000},
		{opus, price.Usage{WebSearches: 2}, 20_000_000},
		{opus, price.Usage{Tokens: price.Tokens{Input: 1_000_000, Output: 1_000_000, CacheRead: 1_000_000}, Fast: true, Domestic: true}, 53_240_000_000},
		{haiku, price.Usage{Tokens: price.Tokens{Input: 100_000}}, 10_000_000},
		{haiku, price.Usage{Tokens: price.Tokens{Input: 1, CacheRead: 100_000}}, 5_000_500},
		{price.BuiltIn("gpt-6.1-sol"), price.Usage{Tokens: price.Tokens{Input: 1000, CacheRead: 272_000, Output: 100}}, 4_000_000 + 54_400_000 + 1_500_000},
		{opus, price.Usage{Tokens: price.Tokens{Input: 1 << 62}}, price.MaxUSD * 1_000_000_000},
		{opus.Times(0.5), price.Usage{Tokens: price.Tokens{Input: 1000}, Fast: true}, 4_000_000},
	} {
		assert.Equal(t, c.want, c.of.Of(c.u), "%+v", c.u)
	}
}
