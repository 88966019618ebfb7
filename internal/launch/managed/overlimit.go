package managed

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/enforce"
	"heartbeat/internal/meter"
	"heartbeat/internal/price"
)

// timeLook is how often the time is looked at that an entry takes.
const timeLook = time.Second

// guardTime ends a session whose entry has reached its limit of time. Its hook does so
// between two requests; one that takes long, or a tool, it cannot end.
func (r *run) guardTime(s *session) {
	look := time.NewTicker(timeLook)
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
			l := enforce.Limits(d, &r.Limits)
			seq, limit = d.DeliveredSeq, l.Entry.Time
		}
		if limit == 0 || enforce.Took(d) < limit {
			continue
		}
		if v := enforce.Judge(enforce.Limits(d, &r.Limits), enforce.Spent{Took: enforce.Took(d)}, d.Attempt); v != nil {
			s.end(verdict{text: "its entry has reached its limit: " + v.Figures, over: v, seq: seq})
			return
		}
	}
}

// settleOver settles the entry because of whose limit the last session was ended. One
// that was answered all the same, or of which its agent has spoken, is left to
// [recovery.Settle].
func (r *run) settleOver(tx *inbox.Tx) (settled bool, err error) {
	d := tx.InFlight()
	if r.last == nil || d == nil {
		return false, nil
	}
	why := r.last.ended()
	if why.over == nil || why.seq != d.DeliveredSeq {
		return false, nil
	}
	if v := d.Verdict; v != nil && v.Kind != inbox.VerdictFailed {
		return false, nil
	}
	if r.Recovery.Finished != nil {
		if _, finished := r.Recovery.Finished(tx); finished {
			return false, nil
		}
	}
	return true, enforce.Settle(tx, why.over, r.Recovery.MaxAttempts)
}

// spentBy is what a session has spent, as far as its meter has counted.
func (r *run) spentBy(s *session) price.Amount {
	if !r.Limits.Session.Any() || s.name() == "" {
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
	v := enforce.JudgeSession(r.Limits, r.spentBy(s))
	if v == nil || s.resumed || s.met(&s.worked) {
		return nil
	}
	return &ending{reason: SetUp, detail: v.Figures + " before it was given an entry: raise --max-cost-per-session or --max-tokens-per-session above what the first prompt costs"}
}
