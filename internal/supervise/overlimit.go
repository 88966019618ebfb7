package supervise

import (
	"time"

	recovery "heartbeat/recover"
)

// guardTime ends a session whose entry has reached its limit of time. Its hook does so
// between two requests; one that takes long, or a tool, it cannot end.
func (r *run) guardTime(s *session) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var seq int64 // of the delivery that limits are about
	var limit time.Duration
	for {
		select {
		case <-s.over:
			return
		case <-look.C:
		}
		_, d := r.follow.counts()
		if d == nil {
			continue
		}
		if d.DeliveredSeq != seq {
			l := recovery.LimitsOf(d, r.Settings.Limits)
			seq, limit = d.DeliveredSeq, l.Entry.Time
		}
		if limit == 0 || recovery.Took(d) < limit {
			continue
		}
		if v := recovery.Judge(recovery.LimitsOf(d, r.Settings.Limits), recovery.Spent{Took: recovery.Took(d)}, d.Attempt); v != nil {
			s.end(verdict{text: "its entry has reached its limit: " + v.Figures, over: v, seq: seq})
			return
		}
	}
}
