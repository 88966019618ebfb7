package run

import "time"

// SetGrain makes a journal count as standing still sooner. File systems that tests
// run on count in far less than two seconds.
func SetGrain(d time.Duration) { grain = d }
