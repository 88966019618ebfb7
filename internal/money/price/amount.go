package price

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"heartbeat/inbox"
)

// Amount is a sum of spending. The zero value is nothing spent, and no dollars known.
type Amount struct {
	Nanos    int64 // billionths of a dollar
	Dollars  bool  // some request's cost is known; otherwise Nanos is 0 and means nothing
	Tokens   Tokens
	Requests int64 // to the model
	Unpriced int64 // those of Requests to models without a known price
	// ClientNanos is how much the client's own total grew meanwhile, in billionths of a dollar, which checks Nanos. It
	// is 0 if the client states no total.
	ClientNanos int64
}

// Plus returns the sum of both. Dollars are known if either's are.
func (a Amount) Plus(b Amount) Amount {
	a.Dollars = a.Dollars || b.Dollars
	return a.with(b, plus)
}

// Minus returns a without b, which must not be larger. Dollars are known if those of a are.
func (a Amount) Minus(b Amount) Amount {
	return a.with(b, func(a, b int64) int64 { return a - b })
}

// Most returns the larger of each count. Dollars are known if either's are.
func (a Amount) Most(b Amount) Amount {
	a.Dollars = a.Dollars || b.Dollars
	return a.with(b, func(a, b int64) int64 { return max(a, b) })
}

func (a Amount) with(b Amount, combine func(a, b int64) int64) Amount {
	into, of := a.counts(), b.counts()
	for i, n := range of {
		*into[i] = combine(*into[i], *n)
	}
	return a
}

// counts returns all numbers, in the order of [Amount.Short].
func (a *Amount) counts() [8]*int64 {
	t := &a.Tokens
	return [...]*int64{&a.Nanos, &t.Input, &t.Output, &t.CacheRead, &t.CacheWrite, &a.Requests, &a.Unpriced, &a.ClientNanos}
}

// IsZero reports whether nothing was spent, whether or not dollars are known.
func (a Amount) IsZero() bool {
	return a.Nanos == 0 && !a.hasRequests() && a.ClientNanos == 0
}

func (a Amount) hasRequests() bool { return a.Requests != 0 || a.Tokens != Tokens{} }

// USD returns the dollars, for readers that need no exact sum.
func (a Amount) USD() float64 { return float64(a.Nanos) / 1e9 }

// plus adds counts without overflow: a forged file must not turn spending into credit.
func plus(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// Tokens are those of one or many requests: Input excludes what the cache held.
type Tokens inbox.Tokens

// Sum returns the tokens of all kinds, which a limit of tokens counts.
func (t Tokens) Sum() int64 {
	return plus(plus(t.Input, t.Output), plus(t.CacheRead, t.CacheWrite))
}

// Most returns the larger of each count.
func (t Tokens) Most(o Tokens) Tokens {
	return Tokens{max(t.Input, o.Input), max(t.Output, o.Output), max(t.CacheRead, o.CacheRead), max(t.CacheWrite, o.CacheWrite)}
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
	counts := a.counts()
	end := len(counts)
	if a.Unpriced == 0 && a.ClientNanos == 0 {
		end -= 2
	}
	for _, n := range counts[1:end] {
		b = strconv.AppendInt(append(b, ' '), *n, 10)
	}
	return string(b)
}

// Short reads what [Amount.Short] wrote.
func Short(text string) (a Amount, err error) {
	if text == "" {
		return a, nil
	}
	parts := strings.Fields(text)
	into := a.counts()
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
