package supervise

import (
	"time"

	recovery "heartbeat/recover"

	"heartbeat/internal/meter"
	"heartbeat/internal/price"
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

// spentBy is what a session has spent, as far as its meter has counted.
func (r *run) spentBy(s *session) price.Amount {
	if !r.Settings.Limits.Session.Any() || s.name() == "" {
		return price.Amount{}
	}
	counted, err := meter.Load(r.box.Dir(), s.name())
	if err != nil || counted == nil {
		return price.Amount{}
	}
	return counted.Spent
}

// checkSessionLimit ends the work if a session has reached its limit before it was given
// an entry: the next one would, too, and each costs that much.
func (r *run) checkSessionLimit(s *session) *ending {
	v := recovery.JudgeSession(r.Settings.Limits, r.spentBy(s))
	if v == nil || s.resumed || s.met(&s.worked) {
		return nil
	}
	return &ending{reason: SetUp, final: true, detail: v.Figures + " before it was given an entry: raise --max-cost-per-session or --max-tokens-per-session above what the first prompt costs"}
}
