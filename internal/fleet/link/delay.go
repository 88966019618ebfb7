package link

import (
	"math/rand/v2"
	"time"
)

const (
	firstDelay = 125 * time.Millisecond
	mostDelay  = 8 * time.Second
)

// delay is how long to wait after so many tries: twice as long each time, up to 8 s, less
// a random part, so that a thousand agents do not come back at once.
func delay(tries int) time.Duration {
	d := mostDelay
	if tries < 7 {
		d = firstDelay << max(tries-1, 0)
	}
	return d/2 + rand.N(d/2+1)
}
