package price

import "math"

// Amount is a sum of spending. The zero value is nothing spent, and no dollars known.
type Amount struct {
	Nanos    int64 // billionths of a dollar
	Dollars  bool  // the client said what it cost; without it Nanos is 0 and says nothing
	Tokens   Tokens
	Requests int64 // to the model
}

// Plus is the sum of both. Dollars are known where either's are.
func (a Amount) Plus(b Amount) Amount {
	return Amount{plus(a.Nanos, b.Nanos), a.Dollars || b.Dollars, a.Tokens.Plus(b.Tokens), plus(a.Requests, b.Requests)}
}

// Minus is what is left of a without b, which is not more. Dollars are known where
// those of a are.
func (a Amount) Minus(b Amount) Amount {
	return Amount{a.Nanos - b.Nanos, a.Dollars, a.Tokens.Minus(b.Tokens), a.Requests - b.Requests}
}

// IsZero reports whether nothing was spent, whether or not dollars are known.
func (a Amount) IsZero() bool { return a.Nanos == 0 && a.Tokens == Tokens{} && a.Requests == 0 }

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

// times is the product of a count and a small factor above 0.
func times(n, factor int64) int64 {
	if n > math.MaxInt64/factor {
		return math.MaxInt64
	}
	return n * factor
}
