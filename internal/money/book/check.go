package book

import (
	"math"
	"strings"

	"heartbeat/internal/money/price"
)

// Check compares what was priced with what the client itself said, over the sessions in which the client said a
// total and every request has a price.
type Check map[string]price.Amount // by session

// maxChecked bounds how many sessions are compared.
const maxChecked = 100_000

// Add books what a session spent. A session with a summary is not compared, because its cost is a guess or the
// client's own figure. Neither is one with a person's own prices.
func (c Check) Add(l *price.Line) {
	a := l.Amount
	if l.Guess || l.Own {
		a.Unpriced++
	}
	if was, known := c[l.SessionID]; known || len(c) < maxChecked {
		c[strings.Clone(l.SessionID)] = was.Plus(a)
	}
}

const (
	tolerance = 0.01 // how far the two may differ, as a fraction of what the client said
	// leastChecked is the least spending, in nanodollars, that proves anything. The client makes small requests of
	// its own, such as for titles, that are in no transcript.
	leastChecked = 1_000_000_000
)

// Sentence says that the price table seems to be out of date, because the two differ so much, or is empty.
func (c Check) Sentence() string {
	priced, said := int64(0), int64(0)
	for _, a := range c {
		if a.Said > 0 && a.Unpriced == 0 {
			priced, said = priced+a.Nanos, said+a.Said
		}
	}
	if said < leastChecked || math.Abs(float64(priced-said)) <= tolerance*float64(said) {
		return ""
	}
	return "by the table of prices of " + price.TableDate + " the sessions cost " + price.FormatUSD(priced) + " USD, and by the client's own totals " +
		price.FormatUSD(said) + " USD: the table may be out of date (heartbeat costs --prices prints it, and says how to change it)"
}
