package supervise

import (
	"math/rand/v2"
	"time"
)

const (
	// firstRest is the rest after a session that ended too early, or a try that came to none;
	// it doubles with each in a row, up to mostRest.
	firstRest = time.Second
	mostRest  = 5 * time.Minute
)

// pace is how the sessions follow one another.
type pace struct {
	early     bool      // the last session ended too early
	fruitless int       // sessions since an entry was answered
	faults    int       // tries since the last session that came to none
	answered  int64     // by the sessions so far
	notBefore time.Time // when the next session may begin
}

// sessionEnded counts a session. answered is by all sessions so far; broken says that
// this one did not end as it was meant to, and lasted that it was up for long, as one is that
// idles.
func (p *pace) sessionEnded(answered int64, broken, lasted bool) {
	p.fruitless++
	p.faults = 0
	if answered > p.answered || lasted {
		p.fruitless, p.answered = 0, answered
	}
	p.early = broken || p.fruitless > 0
	p.rest()
}

// fault counts a try that came to no session.
func (p *pace) fault() {
	p.faults++
	p.early = true
	p.rest()
}

// tries is how many in a row came to nothing.
func (p *pace) tries() int { return p.fruitless + p.faults }

// rest sets when the next session may begin.
func (p *pace) rest() {
	p.notBefore = time.Time{}
	if !p.early {
		return
	}
	rest := firstRest
	for range p.tries() - 1 {
		rest = min(2*rest, mostRest)
	}
	rest += time.Duration(rand.Float64() * float64(rest) / 5) // not all at once after an outage
	p.notBefore = time.Now().Add(rest)
}
