package price_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/price"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]price.Limits{
		"": {}, "null": {}, "{}": {},
		`{"cost_usd":2.5}`:                      {Nanos: 2_500_000_000},
		`{"cost_usd":"2.50","tokens":"400k"}`:   {Nanos: 2_500_000_000, Tokens: 400_000},
		`{"tokens":400000.0,"time":"30m"}`:      {Tokens: 400_000, Time: 30 * time.Minute},
		`{"time":90}`:                           {Time: 90 * time.Second},
		`{"time":"1d","cost_usd":null}`:         {Time: 24 * time.Hour},
		`{"cost_usd":1e-3,"raised":true}`:       {Nanos: 1_000_000, Raised: true},
		` { "cost_usd" : 1000000000 } `:         {Nanos: 1e18},
		`{"cost_usd":3,"cost_usd":2}`:           {Nanos: 2_000_000_000},
		`{"cost_usd":0.25,"raised":false}`:      {Nanos: 250_000_000},
		`{"tokens":"1.5M","time":"87600h0m0s"}`: {Tokens: 1_500_000, Time: price.MaxTime},
	} {
		l, err := price.ParseLimits([]byte(text))
		require.NoError(t, err, text)
		assert.Equal(t, want, l, text)
		again, err := price.ParseLimits(l.JSON())
		require.NoError(t, err, text)
		if l.Any() {
			assert.Equal(t, l, again, text)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, says := range map[string]string{
		`5`:                        "limits: it is not a JSON object",
		`"2.50"`:                   "limits: it is not a JSON object",
		`{`:                        "limits: it is not valid JSON",
		`{"cost":2}`:               `limits: "cost" is none of cost_usd, tokens and time`,
		`{"cost_usd":0}`:           "limits: cost_usd: ",
		`{"cost_usd":-1}`:          "negative",
		`{"cost_usd":1e400}`:       "too much",
		`{"cost_usd":"NaN"}`:       "no number of dollars",
		`{"cost_usd":"Infinity"}`:  "no number of dollars",
		`{"cost_usd":[2]}`:         "no number of dollars",
		`{"cost_usd":true}`:        "no number of dollars",
		`{"tokens":0}`:             "limits: tokens: ",
		`{"tokens":-5}`:            "negative",
		`{"tokens":1.5}`:           "no whole number",
		`{"tokens":1e99}`:          "no number of tokens",
		`{"time":"0s"}`:            "limits: time: ",
		`{"time":-3}`:              "negative",
		`{"time":"NaN"}`:           "no length of time",
		`{"time":"soon\u001b[2J"}`: "no length of time",
		`{"time":"90000h"}`:        "too much",
		`{"time":"1h","raised":1}`: "raised",
	} {
		l, err := price.ParseLimits([]byte(text))
		require.ErrorContains(t, err, says, text)
		assert.Zero(t, l, text)
		assert.NotContains(t, err.Error(), "\x1b", text)
	}
}

func TestWithin(t *testing.T) {
	own := price.Limits{Nanos: 5, Tokens: 1}
	flags := price.Limits{Nanos: 3, Tokens: 9, Time: 7}
	assert.Equal(t, price.Limits{Nanos: 3, Tokens: 1, Time: 7}, own.Within(flags))
	assert.Equal(t, own.Within(flags), flags.Within(own))
	assert.Equal(t, own, own.Within(price.Limits{}))
	assert.Equal(t, flags, price.Limits{}.Within(flags))
	own.Raised = true
	assert.Equal(t, price.Limits{Nanos: 5, Tokens: 1, Time: 7, Raised: true}, own.Within(flags))
}

func TestOver(t *testing.T) {
	l := price.Limits{Nanos: 2_500_000_000, Tokens: 400_000, Time: 30 * time.Minute}
	spent := func(nanos, tokens int64, took time.Duration) price.Spent {
		return price.Spent{Amount: price.Amount{Nanos: nanos, Dollars: true, Tokens: price.Tokens{Input: tokens}}, Time: took}
	}
	for want, s := range map[string]price.Spent{
		"":                                spent(2_499_999_999, 399_999, 30*time.Minute-1),
		"it cost 2.50 of 2.50 USD":        spent(2_500_000_000, 400_000, 0),
		"it cost 2.61 of 2.50 USD":        spent(2_610_000_000, 0, 0),
		"it took 400000 of 400000 tokens": spent(0, 400_000, time.Hour),
		"it took 31m of 30m":              spent(0, 0, 31*time.Minute),
	} {
		figures, over := l.Over(s)
		assert.Equal(t, want, figures)
		assert.Equal(t, want != "", over)
	}
	figures, _ := price.Limits{Nanos: 50_000_000}.Over(spent(54_000_000, 0, 0))
	assert.Equal(t, "it cost 0.054 of 0.05 USD", figures)
	for want, s := range map[string][2]int64{
		"0.053333334 of 0.05 USD":    {53_333_334, 50_000_000},
		"1.23 of 1.00 USD":           {1_234_567_891, 1_000_000_000},
		"1.000051 of 1.00 USD":       {1_000_051_000, 1_000_000_000},
		"0.001234567 of 0.00123 USD": {1_234_567, 1_230_000},
		"0.123456789 of 0.12345 USD": {123_456_789, 123_450_000},
		"1.00001 of 1.00001 USD":     {1_000_010_000, 1_000_010_000},
	} {
		assert.Equal(t, want, price.USDOf(s[0], s[1]))
	}
	unknown := spent(math.MaxInt64, 0, 0)
	unknown.Dollars = false
	_, over := l.Over(unknown)
	assert.False(t, over, "no dollars are known")
	_, over = price.Limits{}.Over(spent(math.MaxInt64, math.MaxInt64, math.MaxInt64))
	assert.False(t, over, "there is no limit")
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"cost_usd":2.5,"tokens":"400k","time":"30m"}`, `{"cost_usd":1e400}`, `null`, `{"time":-0}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := price.ParseLimits(text)
		if err != nil {
			assert.Zero(t, l)
			return
		}
		assert.False(t, l.Nanos < 0 || l.Tokens < 0 || l.Time < 0 || l.Time > price.MaxTime)
		again, err := price.ParseLimits(l.JSON())
		require.NoError(t, err)
		if l.Any() {
			assert.Equal(t, l, again)
		}
	})
}

// Whoever sends an entry cannot raise its limits over those of the flags.
func TestParseSent(t *testing.T) {
	_, err := price.ParseSentLimits([]byte(`{"cost_usd":5,"raised":true}`))
	require.ErrorContains(t, err, "dead-letter requeue")
	l, err := price.ParseSentLimits([]byte(`{"cost_usd":5}`))
	require.NoError(t, err)
	assert.Equal(t, price.Limits{Nanos: 5_000_000_000}, l)
}
