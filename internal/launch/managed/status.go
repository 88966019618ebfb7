package managed

import (
	"fmt"
	"time"

	recovery "heartbeat/recover"
)

// status is the queue in a few words.
func (r *run) status() string {
	answered, flying := r.follow.counts()
	text := fmt.Sprintf("%d queued, %d answered", countQueued(r.box), answered)
	if flying != nil {
		text += ", one in flight since " + flying.DeliveredAt.Local().Format(time.TimeOnly)
	}
	if s := r.current.Load(); s == nil {
		text += ", no session"
	} else if s.asks.Load() {
		text += ", waiting for a person"
	}
	return text
}

// goesOn reports whether the work goes on: a session that has an entry prints, unless it
// waits for a person or for its tasks.
func (r *run) goesOn() bool {
	s := r.current.Load()
	if s == nil || s.printed.Swap(false) {
		return true
	}
	_, flying := r.follow.counts()
	return flying == nil || s.asks.Load() || recovery.EvidenceOf(flying).Held
}
