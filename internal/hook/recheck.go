package hook

import "time"

// recheck is when a waiting hook looks again although nothing has happened.
type recheck struct {
	again time.Duration // 0 for never
}

// lookAgainIn has a waiting hook look after that time, even if nothing happens.
// The clock may be set meanwhile, so that it looks from time to time in between.
func (r *recheck) lookAgainIn(d time.Duration) {
	d = min(max(d, minRecheck), maxRecheck)
	if r.again == 0 || d < r.again {
		r.again = d
	}
}

const minRecheck, maxRecheck = 10 * time.Millisecond, time.Minute
