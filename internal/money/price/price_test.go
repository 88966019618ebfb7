package price_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/flat"
	"heartbeat/internal/money/price"
)

func TestParseUSD(t *testing.T) {
	for in, want := range map[string]int64{
		"2.50": 2_500_000_000, "1": 1_000_000_000, "0.000000001": 1, "0.0000000005": 1, "1e2": 100_000_000_000, "1E-2": 10_000_000,
		"1000000000": 1_000_000_000_000_000_000, "000.10": 100_000_000, "0.016800000000000002": 16_800_000,
		strings.Repeat("0", 5000) + "1": 1_000_000_000, "0.1" + strings.Repeat("0", 5000): 100_000_000,
	} {
		got, err := price.ParseUSD(in)
		require.NoError(t, err, in)
		assert.Equal(t, want, got, in)
	}
	for in, want := range map[string]string{
		"": "no number", "x": "no number", "NaN": "no number", "Inf": "no number", "+Inf": "no number", "$2": "no number", "2,50": "no number",
		"0x10": "no number", "1_000": "no number", ".5": "no number", "5.": "no number", "+1": "no number", "--1": "no number", "1e": "no number",
		"1e+-2": "no number", " 1": "no number", "1 USD": "no number", "1.2.3": "no number", "-": "no number", "-x": "no number",
		"0": "nothing", "-0": "nothing", "0.0": "nothing", "0.0000000004": "nothing", "1e-400": "nothing", "1e-99999999999999999999": "nothing",
		"-1": "negative", "-0.01": "negative", "1000000000.000000001": "too much", "1e400": "too much", "1e99999999999999999999": "too much",
		"9223372036854775808": "too much", "-1e400": "too much", strings.Repeat("9", 5000): "too much",
	} {
		_, err := price.ParseUSD(in)
		require.ErrorContains(t, err, want, in)
		assert.Less(t, len(err.Error()), 200)
	}
}

func TestParseTokens(t *testing.T) {
	for in, want := range map[string]int64{
		"4000": 4000, "400k": 400_000, "1.5M": 1_500_000, "1K": 1000, "2m": 2_000_000, "0.001k": 1, "1.0": 1, "1000000M": 1_000_000_000_000,
	} {
		got, err := price.ParseTokens(in)
		require.NoError(t, err, in)
		assert.Equal(t, want, got, in)
	}
	for in, want := range map[string]string{
		"": "no number", "k": "no number", "x": "no number", "1.k": "no number", ".5k": "no number", "NaN": "no number", "1e3": "no number", "-": "no number",
		"1kk": "no number", "1.5": "no whole", "0.0001k": "no whole", "0": "nothing", "0k": "nothing", "-5": "negative", "-0": "negative",
		"1000001M": "too much", strings.Repeat("9", 5000): "too much",
	} {
		_, err := price.ParseTokens(in)
		require.ErrorContains(t, err, want, in)
	}
}

func TestFormatUSD(t *testing.T) {
	for want, in := range map[string]int64{
		"0.00": 0, "2.50": 2_500_000_000, "0.0042": 4_200_000, "0.03": 33_600_000, "0.001235": 1_234_560, "0.01": 9_999_990, "0.009999": 9_999_000,
		"0.000000001": 1, "1234567.89": 1_234_567_891_000_000, "-2.50": -2_500_000_000, "-0.0042": -4_200_000, "0.10": 100_000_000,
		"0.005": 5_000_000, "9223372036.85": math.MaxInt64, "-9223372036.85": math.MinInt64,
	} {
		assert.Equal(t, want, price.FormatUSD(in))
	}
}

func TestAmountsAddUp(t *testing.T) {
	a := price.Amount{Nanos: 5, Dollars: true, Tokens: price.Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, Requests: 1}
	b := price.Amount{Nanos: 7, Tokens: price.Tokens{Input: 10, Output: 20, CacheRead: 30, CacheWrite: 40}, Requests: 2}
	sum := a.Plus(b)
	assert.Equal(t, price.Amount{Nanos: 12, Dollars: true, Tokens: price.Tokens{Input: 11, Output: 22, CacheRead: 33, CacheWrite: 44}, Requests: 3}, sum)
	assert.Equal(t, a, sum.Minus(b))
	assert.Equal(t, int64(10), a.Tokens.Sum())
	assert.True(t, price.Amount{Dollars: true}.IsZero())
	assert.False(t, a.IsZero())
	most := price.Amount{Nanos: math.MaxInt64, Tokens: price.Tokens{Input: math.MaxInt64, Output: math.MaxInt64}}
	assert.Equal(t, int64(math.MaxInt64), most.Plus(most).Nanos)
	assert.Equal(t, int64(math.MaxInt64), most.Tokens.Sum())
}

var prices = map[string]price.Price{
	`{}`: {},
	`{"cost_usd":0,"tokens":{"input":0,"output":0,"cache_read":0,"cache_write":0},"requests":1}`: {
		Amount: price.Amount{Dollars: true, Requests: 1}},
	`{"tokens":{"input":1,"output":2,"cache_read":3,"cache_write":4},"requests":2,"model":"m"}`: {
		Amount: price.Amount{Tokens: price.Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, Requests: 2}, Model: "m"},
	`{"cost_usd":0.0336,"tokens":{"input":1,"output":0,"cache_read":0,"cache_write":0},"requests":3,"unpriced":2,"client_usd":0.04}`: {
		Amount: price.Amount{Nanos: 33_600_000, Dollars: true, Tokens: price.Tokens{Input: 1}, Requests: 3, Unpriced: 2, ClientNanos: 40_000_000}},
}

func TestPriceAsJSON(t *testing.T) {
	for want, p := range prices {
		assert.Equal(t, want, string(p.JSON()))
		byFields, err := flat.JSON(p.Cost())
		require.NoError(t, err)
		assert.Equal(t, want, string(byFields), "Members and Cost agree")
		byJSON, err := json.Marshal(p)
		require.NoError(t, err)
		assert.Equal(t, want, string(byJSON))

		var got price.Price
		require.NoError(t, json.Unmarshal([]byte(want), &got))
		assert.Equal(t, p, got)
		var fields inbox.Cost
		require.NoError(t, json.Unmarshal([]byte(want), &fields))
		assert.Equal(t, p, price.Of(fields))
	}
}

func TestBadPrices(t *testing.T) {
	for in, want := range map[string]string{
		`{"cost_usd":"1"}`: "cost_usd", `{"cost_usd":1e400}`: "cost_usd", `{"tokens":1}`: "tokens", `{"tokens":{"input":-1}}`: "negative",
		`{"tokens":{"input":1.5}}`: "input", `{"requests":-1}`: "requests", `{"requests":"1"}`: "requests",
		`{"unpriced":-1}`: "unpriced", `{"client_usd":"x"}`: "client_usd", `[]`: "object",
	} {
		var p price.Price
		assert.ErrorContains(t, p.UnmarshalJSON([]byte(in)), want, in)
	}
}

func FuzzDollars(f *testing.F) {
	for _, s := range []string{"2.50", "0", "-1e-3", "1e400", "NaN", "0.016800000000000002", "00.5e+1", "999999999.9999999995"} {
		f.Add(s)
	}
	most := new(big.Rat).SetInt64(price.MaxUSD)
	f.Fuzz(func(t *testing.T, s string) {
		nanos, err := price.DollarsOf(s)
		if limit, limitErr := price.ParseUSD(s); limitErr == nil {
			assert.Positive(t, limit)
			assert.NoError(t, err)
		}
		if err != nil || len(s) > 40 {
			return
		}
		exact, ok := new(big.Rat).SetString(s)
		require.True(t, ok, "%q", s)
		off := new(big.Rat).Sub(exact, new(big.Rat).SetFrac64(nanos, 1_000_000_000))
		assert.LessOrEqual(t, off.Abs(off).Cmp(big.NewRat(1, 2_000_000_000)), 0, "%q is %d", s, nanos)
		assert.LessOrEqual(t, exact.Abs(exact).Cmp(new(big.Rat).Add(most, big.NewRat(1, 1))), 0)
		text, _ := price.Nanos(nanos).MarshalJSON()
		again, err := price.DollarsOf(string(text))
		require.NoError(t, err)
		assert.Equal(t, nanos, again)
		assert.True(t, json.Valid(text))
		price.FormatUSD(nanos)
	})
}

func FuzzTokens(f *testing.F) {
	for _, s := range []string{"400k", "1.5M", "-1", "0.0001k", "1e3", "999999999999999999999M"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := price.ParseTokens(s)
		if err == nil {
			assert.Positive(t, n)
			assert.LessOrEqual(t, n, int64(price.MaxTokens))
		}
	})
}

func FuzzPrice(f *testing.F) {
	for text := range prices {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p, again price.Price
		if p.UnmarshalJSON(text) != nil {
			return
		}
		require.True(t, json.Valid(p.JSON()))
		require.NoError(t, again.UnmarshalJSON(p.JSON()))
		assert.Equal(t, p.JSON(), again.JSON())
	})
}
