package price

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"heartbeat/internal/flat"
)

// Amount is a sum of spending. The zero value is nothing spent, and no dollars known.
type Amount struct {
	Nanos    int64 // billionths of a dollar
	Dollars  bool  // it is known what some request cost; without it Nanos is 0 and says nothing
	Tokens   Tokens
	Requests int64 // to the model
	Unpriced int64 // how many of Requests were to models whose prices nobody knows
	// Said is what the client's own total grew by meanwhile, in billionths of a dollar: the check
	// on Nanos. It is 0 where the client says no total.
	Said int64
}

// Plus is the sum of both. Dollars are known where either's are.
func (a Amount) Plus(b Amount) Amount {
	return Amount{
		plus(a.Nanos, b.Nanos), a.Dollars || b.Dollars, a.Tokens.Plus(b.Tokens), plus(a.Requests, b.Requests),
		plus(a.Unpriced, b.Unpriced), plus(a.Said, b.Said),
	}
}

// Minus is what is left of a without b, which is not more. Dollars are known where
// those of a are.
func (a Amount) Minus(b Amount) Amount {
	return Amount{a.Nanos - b.Nanos, a.Dollars, a.Tokens.Minus(b.Tokens), a.Requests - b.Requests, a.Unpriced - b.Unpriced, a.Said - b.Said}
}

// IsZero reports whether nothing was spent, whether or not dollars are known.
func (a Amount) IsZero() bool {
	return a.Nanos == 0 && a.Tokens == Tokens{} && a.Requests == 0 && a.Said == 0
}

// USD is the dollars, for shares and other readers that need no exact sum.
func (a Amount) USD() float64 { return float64(a.Nanos) / 1e9 }

// plus adds counts without wrapping round: a file that was tampered with must not
// turn spending into credit.
func plus(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// Tokens are the tokens of one or many requests, as the model's provider counts
// them: what the cache held is not part of Input.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Sum is all tokens, of whatever kind: what a limit of tokens counts.
func (t Tokens) Sum() int64 {
	return plus(plus(t.Input, t.Output), plus(t.CacheRead, t.CacheWrite))
}

// Plus is the sum of both.
func (t Tokens) Plus(o Tokens) Tokens {
	return Tokens{plus(t.Input, o.Input), plus(t.Output, o.Output), plus(t.CacheRead, o.CacheRead), plus(t.CacheWrite, o.CacheWrite)}
}

// Minus is what is left of t without o, which is not more.
func (t Tokens) Minus(o Tokens) Tokens {
	return Tokens{t.Input - o.Input, t.Output - o.Output, t.CacheRead - o.CacheRead, t.CacheWrite - o.CacheWrite}
}

// Members writes or reads the four members.
func (t *Tokens) Members(c flat.Codec) {
	c.Int("input", &t.Input)
	c.Int("output", &t.Output)
	c.Int("cache_read", &t.CacheRead)
	c.Int("cache_write", &t.CacheWrite)
}

// JSON is the tokens as an object.
func (t Tokens) JSON() []byte {
	var o flat.Object
	t.Members(flat.To(&o))
	return o.End()
}

// TokensOf reads what [Tokens.JSON] wrote. Negative counts are refused.
func TokensOf(object []byte) (t Tokens, err error) {
	m, err := flat.Parse(object)
	if err != nil {
		return t, err
	}
	t.Members(flat.From(m))
	if m.Err() != nil {
		return Tokens{}, m.Err()
	}
	if t.Input < 0 || t.Output < 0 || t.CacheRead < 0 || t.CacheWrite < 0 {
		return Tokens{}, errors.New("a count of tokens is negative")
	}
	return t, nil
}

// Short is an amount in one short string, empty for nothing: billionths of a dollar
// ("-" if no dollars are known), tokens (input, output, cache read, cache write), and
// requests; behind them, unless both are 0, the requests without a price and the client's total.
// It is part of every record.
func (a Amount) Short() string {
	if a == (Amount{}) {
		return ""
	}
	b := make([]byte, 0, 64)
	if a.Dollars {
		b = strconv.AppendInt(b, a.Nanos, 10)
	} else {
		b = append(b, '-')
	}
	counts := [...]int64{a.Tokens.Input, a.Tokens.Output, a.Tokens.CacheRead, a.Tokens.CacheWrite, a.Requests, a.Unpriced, a.Said}
	n := len(counts)
	if a.Unpriced == 0 && a.Said == 0 {
		n -= 2
	}
	for _, n := range counts[:n] {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	return string(b)
}

// Short reads what [Amount.Short] wrote.
func Short(text string) (a Amount, err error) {
	if text == "" {
		return a, nil
	}
	parts := strings.Fields(text)
	into := [...]*int64{
		&a.Nanos, &a.Tokens.Input, &a.Tokens.Output, &a.Tokens.CacheRead, &a.Tokens.CacheWrite, &a.Requests, &a.Unpriced, &a.Said,
	}
	if n := len(parts); n != len(into) && n != len(into)-2 {
		return a, fmt.Errorf("%q is no amount", clipped(text))
	}
	a.Dollars = parts[0] != "-"
	for i, p := range parts {
		if i == 0 && !a.Dollars {
			continue
		}
		if *into[i], err = strconv.ParseInt(p, 10, 64); err != nil || *into[i] < 0 {
			return Amount{}, fmt.Errorf("%q is no amount", clipped(text))
		}
	}
	return a, nil
}

// Most takes the larger of each count.
func (a Amount) Most(b Amount) Amount {
	return Amount{
		Nanos: max(a.Nanos, b.Nanos), Dollars: a.Dollars || b.Dollars, Requests: max(a.Requests, b.Requests),
		Unpriced: max(a.Unpriced, b.Unpriced), Said: max(a.Said, b.Said), Tokens: a.Tokens.Most(b.Tokens),
	}
}

// Most takes the larger of each count.
func (t Tokens) Most(o Tokens) Tokens {
	return Tokens{max(t.Input, o.Input), max(t.Output, o.Output), max(t.CacheRead, o.CacheRead), max(t.CacheWrite, o.CacheWrite)}
}
