package supervise

import (
	"time"

	"heartbeat/internal/machine"
)

// alarmEvery is how often an alarm looks at the clocks: a timer stands still while the
// machine sleeps. A test shortens it.
var alarmEvery = 15 * time.Second

// clockSet is by how much the clock on the wall must have been set to count.
const clockSet = 2 * time.Second

// clocks are what an alarm goes by: that of the wall, and one that nobody can set and that
// goes on while the machine sleeps.
type clocks struct {
	wall func() time.Time
	boot func() int64
}

var systemClocks = clocks{func() time.Time { return time.Now().Round(0) }, machine.SinceBoot}

// alarm rings after a time that a sleep of the machine counts in. It rings early where the
// wall's clock was set: what is waited for may end by that one.
type alarm struct {
	clocks
	from time.Time
	set  int64
	rest time.Duration
}

func (c clocks) alarm(rest time.Duration) alarm { return alarm{c, c.wall(), c.boot(), rest} }

// next is when to look at it again, 0 once it rings.
func (a alarm) next() time.Duration {
	passed := time.Duration(a.boot() - a.set)
	if set := a.wall().Sub(a.from) - passed; set.Abs() > clockSet {
		return 0
	}
	return min(max(0, a.rest-passed), alarmEvery)
}
