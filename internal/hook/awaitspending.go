package hook

import (
	"time"

	"heartbeat/internal/budget"
	"heartbeat/internal/charging"
	"heartbeat/internal/cli"
	"heartbeat/internal/enforce"
	"heartbeat/internal/meter"
	"heartbeat/internal/price"
)

// awaitSpending is for the end of a turn. The client says half a second later what its last
// request cost, and writes its transcript late, while a chain of short turns has gone on
// several times by then. So close to a limit of the session or the day the hook waits for
// what the client says after the turn. It has no lock, and changes nothing but the count.
func (h *hook) awaitSpending() {
	l := cli.LimitFlags{Session: h.Limits.Session, Day: h.Limits.Day}
	if h.input == nil || !l.Any() {
		return
	}
	dir, session := h.box.Dir(), h.input.SessionID
	ended := time.Now().Add(-h.age())
	s, err := meter.Advance(dir, meter.Reading{Session: session, Transcript: h.input.TranscriptPath, Requests: -1, ContextPercent: -1})
	h.uncounted(err)
	for began := time.Now(); s != nil && s.Client != "" && time.Since(began) < priceWait; {
		if _, sure, _ := s.Expected(); sure && !s.At.Before(ended) || !h.isNear(l, s) {
			return
		}
		time.Sleep(pricePoll)
		if now, _ := meter.Load(dir, session); now != nil {
			s = now
		}
	}
}

// isNear reports whether a few requests more, or those that have no price yet, may reach a
// limit.
func (h *hook) isNear(l cli.LimitFlags, s *meter.State) bool {
	if s.Spent.Requests == 0 {
		return true
	}
	expected, _, _ := s.Expected()
	more := price.Amount{
		Nanos: nearLimit * (expected - s.Spent.Nanos + expected/s.Spent.Requests), Dollars: s.Spent.Dollars,
		Tokens: price.Tokens{Input: nearLimit * (s.Spent.Tokens.Sum() / s.Spent.Requests)},
	}
	if enforce.JudgeSession(l, s.Spent.Plus(more)) != nil {
		return true
	}
	if l.Day == (budget.Limits{}) {
		return false
	}
	view, err := h.box.View()
	if err != nil {
		return false // the transaction says why
	}
	defer func() { _ = view.Close() }() // it was only read
	spending, err := view.Spending(charging.Reading(s))
	return err == nil && enforce.JudgeDay(l, spending.Today.Plus(more)) != nil
}
