package price_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/money/price"
)

func TestText(t *testing.T) {
	dollars := price.Amount{Nanos: 2_500_000_000, Dollars: true, Tokens: price.Tokens{Input: 1000}, Requests: 1}
	partly := dollars
	partly.Unpriced = 1
	tokens := price.Amount{Tokens: price.Tokens{Input: 41_000, CacheRead: 200}, Requests: 3}
	for _, tc := range []struct {
		price      price.Price
		text, cell string
	}{
		{price.Price{}, "", ""},
		{price.Price{Amount: price.Amount{Dollars: true}}, "0.00 USD", "0.00"},
		{price.Price{Amount: dollars}, "2.50 USD", "2.50"},
		{price.Price{Amount: partly}, "2.50+ USD", "2.50+"},
		{price.Price{Amount: price.Amount{ClientNanos: 5}}, "", ""},
		{price.Price{Amount: tokens}, "41.2k tokens", "41.2k tokens"},
	} {
		assert.Equal(t, tc.text, tc.price.String())
		assert.Equal(t, tc.cell, tc.price.Cell())
	}
}

func TestSentence(t *testing.T) {
	tokens := price.Tokens{Input: 1200, Output: 8000, CacheRead: 30_000, CacheWrite: 2000}
	p := price.Price{Amount: price.Amount{Nanos: 2_500_000_000, Dollars: true, Tokens: tokens, Requests: 14, Unpriced: 2}}
	assert.Equal(t, "2.50+ USD, 14 requests, 41.2k tokens (1.2k in, 8.0k out, 30.0k from the cache, 2.0k to it), 2 of a model whose price is not known", p.Sentence())
	p = price.Price{Amount: price.Amount{Tokens: price.Tokens{Input: 1200, Output: 8}, Requests: 1}}
	assert.Equal(t, "1.2k tokens, 1 request (1.2k in, 8 out)", p.Sentence())
	assert.Empty(t, price.Price{}.Sentence())
	assert.Equal(t, "0.50 USD", price.Price{Amount: price.Amount{Nanos: 500_000_000, Dollars: true}}.Sentence())
}

func TestTokensInWords(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 950: "950", 999: "999", 1000: "1.0k", 41_249: "41.2k", 999_949: "999.9k", 999_950: "1.0M", 1_500_000: "1.5M", math.MaxInt64: "9.2E",
	} {
		assert.Equal(t, want, price.FormatTokens(n))
	}
}
