package costs

import (
	"math"
	"strings"

	"heartbeat/internal/money/price"
)

// Check holds what was priced against what the client itself said, over the sessions in which it
// said a total and every request has a price.
type Check struct {
	sessions map[string]price.Amount
}

// maxChecked bounds how many sessions are held against each other.
const maxChecked = 100_000

// Add books what a session spent. One that has a guess in it is not held against anything.
func (c *Check) Add(l *price.Line) {
	if c.sessions == nil {
		c.sessions = map[string]price.Amount{}
	}
	a := l.Amount
	if l.Guess {
		a.Unpriced++
	}
	if was, known := c.sessions[l.SessionID]; known || len(c.sessions) < maxChecked {
		c.sessions[strings.Clone(l.SessionID)] = was.Plus(a)
	}
}

const (
	// tolerance is how far the two may be apart, as a part of what the client said.
	tolerance = 0.01
	// leastChecked is how much has to be spent for that to tell something: the client asks for
	// small things of its own, such as titles, that no transcript has.
	leastChecked = 1_000_000_000
)

// Off is what was priced and what the client said, and whether they are so far apart that the
// table of prices seems to be out of date.
func (c *Check) Off() (priced, said int64, off bool) {
	for _, a := range c.sessions {
		if a.Said > 0 && a.Unpriced == 0 {
			priced, said = priced+a.Nanos, said+a.Said
		}
	}
	return priced, said, said >= leastChecked && math.Abs(float64(priced-said)) > tolerance*float64(said)
}

// Sentence says that the table seems to be out of date, empty where it does not.
func (c *Check) Sentence() string {
	priced, said, off := c.Off()
	if !off {
		return ""
	}
	return "by the table of prices of " + price.TableDate + " the sessions cost " + price.FormatUSD(priced) + " USD, and by the client's own totals " +
		price.FormatUSD(said) + " USD: the table may be out of date (heartbeat costs --prices prints it, and says how to change it)"
}
