package client

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/testing/model"
)

// The client makes summaries within the turns of two entries. Its total at the end tells what they cost, so that each
// entry has its price within a hundredth. A session that is killed behind them keeps the guess.
func TestHeartbeatCostOfSummaries(t *testing.T) {
	for name, c := range map[string]struct {
		client []string
		killed bool
	}{"launcher": {nil, false}, "print mode": {[]string{"-p"}, false}, "killed": {nil, true}} {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t)
			of := []string{"[e2]", "[e4]"}
			s := newSpender(t, func(tag string, nth int) model.Reply {
				switch {
				case (tag == of[0] || tag == of[1]) && nth == 1: // the context is full
					return nothing.Using(model.Usage{Input: 5000, CacheRead: 965_000, Output: 100})
				case tag == "":
					return model.Text(fmt.Sprintf("<summary>all of it %s</summary>", of[nth-1])).
						Using(model.Usage{Input: 1000, CacheRead: 965_000, CacheWrite: 6000, Output: 6000 + 100*nth})
				case c.killed && tag == "[e5]" && nth == 1:
					return nothing
				case c.killed && tag == "[e5]" && nth == 2:
					return model.Hang()
				}
				return own(tag, nth)
			})
			s.add(some(6)...)
			m := s.managingClient(ctx, append(c.client, anyCommand...), "--on-orphan", "retry")
			if c.killed {
				s.until(ctx, "it is asked", func() bool { return s.hangs("[e5]") })
				s.killClient()
			}
			m.wait()
			s.sessionsGone(ctx)

			summaries := map[string]int64{}
			for _, n := range summaryRequests(s) {
				summaries[of[len(summaries)]] = s.bills[n].Nanos
			}
			assert.Len(t, summaries, 2, "the client did not make them")
			prices := s.priced()
			for _, e := range s.entries {
				bill, lost := s.billed(e.tag)
				want := float64(bill.Nanos + summaries[e.tag])
				t.Logf("%s: %d, and %d for a summary; %v; lost %q", e.tag, bill.Nanos, summaries[e.tag], prices[e.tag].Nanos, lost)
				if c.killed && summaries[e.tag] > 0 {
					assert.Less(t, float64(prices[e.tag].Nanos), want, e.tag)
					assert.Greater(t, prices[e.tag].Nanos, bill.Nanos, e.tag)
					continue
				}
				assert.InEpsilon(t, want, float64(prices[e.tag].Nanos), 0.01, e.tag)
			}
		})
	}
}

// summaryRequests are those that no tag was found in, in their order.
func summaryRequests(s *spender) (all []int) {
	for n := 1; n <= len(s.Model.Requests()); n++ {
		if b, is := s.bills[n]; is && b.tag == "" {
			all = append(all, n)
		}
	}
	return all
}
