package recover

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/host"
)

// Worked is for how long this delivery of the entry was worked on so far. The time after
// its client died is not counted, as far as its transcript tells when that was: nobody
// may have looked for hours.
func Worked(d *inbox.Delivery) time.Duration {
	e := EvidenceOf(d)
	took := time.Since(d.DeliveredAt) // the clock may have been set since
	if e.Boot != "" && e.Boot == host.BootID() {
		took = time.Duration(host.SinceBoot() - e.SinceBoot)
	}
	took = max(0, took)
	if alive, known := host.Lives(e.Boot, e.Namespace, int(e.Client), e.ClientStart); alive || !known {
		return took
	}
	info, err := disk.StatFile(e.Transcript)
	if err != nil || !info.IsRegular {
		return 0
	}
	return min(took, max(0, time.Unix(0, info.Mtime).Sub(d.DeliveredAt)))
}

// Took is for how long the entry in flight was worked on, all its deliveries together.
func Took(d *inbox.Delivery) time.Duration { return d.Took + Worked(d) }
