package budget

import (
	"fmt"
	"time"

	"heartbeat/internal/price"
	"heartbeat/internal/words"
)

// Spent is what was spent, to be held against limits.
type Spent struct {
	price.Amount
	Time time.Duration
}

// Over reports whether a limit is reached, with the figures of the first that is, such
// as "it cost 2.61 of 2.50 USD". A limit in dollars holds only where dollars are known.
func (l Limits) Over(s Spent) (figures string, over bool) {
	tokens := s.Tokens.Sum()
	switch {
	case l.Nanos > 0 && s.Dollars && s.Nanos >= l.Nanos:
		return "it cost " + USD(s.Nanos, l.Nanos), true
	case l.Tokens > 0 && tokens >= l.Tokens:
		return fmt.Sprintf("it took %d of %d tokens", tokens, l.Tokens), true
	case l.Time > 0 && s.Time >= l.Time:
		return fmt.Sprintf("it took %s of %s", words.Took(s.Time), words.Took(l.Time)), true
	}
	return "", false
}

// USD is what was spent, of what, such as "2.61 of 2.50 USD": to the cent where that tells
// them apart and the limit is so, and else to four digits behind the point, since a sum that
// was divided has nine.
func USD(spent, limit int64) string {
	of, limited := price.FormatUSD(spent), price.FormatUSD(limit)
	const cent = 10_000_000
	if limit%cent != 0 {
		limited = exact(limit)
	}
	if of == limited && spent != limit || limit%cent != 0 {
		of = near(spent, limit)
	}
	return of + " of " + limited + " USD"
}

// near is an amount to four digits behind the point, or below a cent to four that count. One
// that has reached a limit is never shown below it.
func near(nanos, limit int64) string {
	const step = 100_000
	rounded := (nanos + step/2) / step * step
	switch {
	case nanos < 100*step:
		return price.FormatUSD(nanos)
	case nanos >= limit && rounded < limit:
		return exact(nanos)
	}
	return exact(rounded)
}

// exact has every digit.
func exact(nanos int64) string {
	text, _ := price.Nanos(nanos).MarshalJSON() // it never fails
	return string(text)
}
