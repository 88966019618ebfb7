package run

import "time"

// SetGrain makes a journal count as settled sooner. The file systems under tests have times
// with a far finer resolution than two seconds.
func SetGrain(d time.Duration) { grain = d }
