package price

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"heartbeat/internal/flat"
)

// Amount is a sum of spending. The zero value is nothing spent, and no dollars known.
type Amount struct {
	Nanos    int64 // billionths of a dollar
	Dollars  bool  // some request's cost is known; otherwise Nanos is 0 and means nothing
	Tokens   Tokens
	Requests int64 // to the model
	Unpriced int64 // those of Requests to models without a known price
	// Said is how much the client's own total grew meanwhile, in billionths of a dollar: the check on Nanos. It is
	// 0 if the client states no total.
	Said int64
}

// Plus returns the sum of both. Dollars are known if either's are.
func (a Amount) Plus(b Amount) Amount {
	return Amount{
		plus(a.Nanos, b.Nanos), a.Dollars || b.Dollars, a.Tokens.Plus(b.Tokens), plus(a.Requests, b.Requests),
		plus(a.Unpriced, b.Unpriced), plus(a.Said, b.Said),
	}
}

// Minus returns a without b, which must not be more. Dollars are known if those of a are.
func (a Amount) Minus(b Amount) Amount {
	return Amount{a.Nanos - b.Nanos, a.Dollars, a.Tokens.Minus(b.Tokens), a.Requests - b.Requests, a.Unpriced - b.Unpriced, a.Said - b.Said}
}

// IsZero reports whether nothing was spent, whether or not dollars are known.
func (a Amount) IsZero() bool {
	return a.Nanos == 0 && a.Tokens == Tokens{} && a.Requests == 0 && a.Said == 0
}

// USD returns the dollars, for readers that need no exact sum.
func (a Amount) USD() float64 { return float64(a.Nanos) / 1e9 }

// plus adds counts without wrapping round: a file that was tampered with must not turn spending into credit.
func plus(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// Tokens are those of one or many requests, as the provider counts them: Input excludes what the cache held.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Sum returns the tokens of all kinds, which a limit of tokens counts.
func (t Tokens) Sum() int64 {
	return plus(plus(t.Input, t.Output), plus(t.CacheRead, t.CacheWrite))
}

func (t Tokens) Plus(o Tokens) Tokens {
	return Tokens{plus(t.Input, o.Input), plus(t.Output, o.Output), plus(t.CacheRead, o.CacheRead), plus(t.CacheWrite, o.CacheWrite)}
}

// Minus returns t without o, which must not be more.
func (t Tokens) Minus(o Tokens) Tokens {
	return Tokens{t.Input - o.Input, t.Output - o.Output, t.CacheRead - o.CacheRead, t.CacheWrite - o.CacheWrite}
}

// JSON returns the tokens as an object.
func (t Tokens) JSON() []byte {
	var o flat.Object
	o.Int("input", t.Input)
	o.Int("output", t.Output)
	o.Int("cache_read", t.CacheRead)
	o.Int("cache_write", t.CacheWrite)
	return o.End()
}

// Short returns an amount as one short string, "" for nothing: billionths of a dollar ("-" if no dollars are
// known), tokens (input, output, cache read, cache write), and requests. Unless both are 0, the requests without a
// price and the client's total follow. It is part of every record.
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

// Most returns the larger of each count.
func (a Amount) Most(b Amount) Amount {
	return Amount{
		Nanos: max(a.Nanos, b.Nanos), Dollars: a.Dollars || b.Dollars, Requests: max(a.Requests, b.Requests),
		Unpriced: max(a.Unpriced, b.Unpriced), Said: max(a.Said, b.Said), Tokens: a.Tokens.Most(b.Tokens),
	}
}

// Most returns the larger of each count.
func (t Tokens) Most(o Tokens) Tokens {
	return Tokens{max(t.Input, o.Input), max(t.Output, o.Output), max(t.CacheRead, o.CacheRead), max(t.CacheWrite, o.CacheWrite)}
}
