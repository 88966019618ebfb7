package managed

import (
	"math/rand/v2"
	"time"
)

const (
	// firstRest is the rest after a session that ended too early; it doubles with each
	// such session in a row, up to mostRest.
	firstRest = time.Second
	mostRest  = 5 * time.Minute
)

// pace is how the sessions follow one another.
type pace struct {
	early     bool      // the last session ended too early
	fruitless int       // sessions since an entry was answered
	answered  int64     // by the sessions so far
	notBefore time.Time // when the next session may begin
}

// sessionEnded counts a session. answered is by all sessions so far; broken says that
// this one did not end as it was meant to.
func (p *pace) sessionEnded(answered int64, broken bool) {
	p.fruitless++
	if answered > p.answered {
		p.fruitless, p.answered = 0, answered
	}
	p.early = broken || p.fruitless > 0
	p.rest()
}

// rest sets when the next session may begin.
func (p *pace) rest() {
	p.notBefore = time.Time{}
	if !p.early {
		return
	}
	rest := firstRest
	for range p.fruitless - 1 {
		rest = min(2*rest, mostRest)
	}
	rest += time.Duration(rand.Float64() * float64(rest) / 5) // not all at once after an outage
	p.notBefore = time.Now().Add(rest)
}
