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
// several times by then. So close to a limit of the session, the day or a babysitter run the hook waits for
// what the client says after the turn. It has no lock, and changes nothing but the count.
func (h *hook) awaitSpending() {
	l := cli.LimitFlags{Session: h.Limits.Session, Day: h.Limits.Day}
	if h.input == nil {
		return
	}
	run := ""
	if run, l.Run = h.runInFlight(); !l.Any() && l.Run == 0 {
		return
	}
	dir, session := h.box.Dir(), h.input.SessionID
	ended := time.Now().Add(-h.age())
	s, err := meter.Advance(dir, meter.Reading{
		Session: session, Transcript: h.input.TranscriptPath, Requests: -1, ContextPercent: -1, Wait: h.meterWait(),
	})
	h.counting.err = err
	h.uncounted(err)
	for began := time.Now(); s != nil && s.Client != "" && time.Since(began) < priceWait; {
		if _, sure, _ := s.Expected(); sure && !s.At.Before(ended) || !h.isNear(l, run, s) {
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
func (h *hook) isNear(l cli.LimitFlags, run string, s *meter.State) bool {
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
	if l.Day == (budget.Limits{}) && l.Run == 0 {
		return false
	}
	view, err := h.box.View()
	if err != nil {
		return false // the transaction says why
	}
	defer func() { _ = view.Close() }() // it was only read
	spending, err := view.Spending(charging.Reading(s))
	if err != nil || l.Day.Any() && enforce.JudgeDay(l, spending.Today.Plus(more)) != nil {
		return err == nil
	}
	spent, err := view.SpentByRun(run, charging.Load(h.box.Dir()))
	_, over := enforce.OverRun(spent.Plus(more), l.Run)
	return err == nil && over
}

// runInFlight is the babysitter run of the entry in flight, and what it may cost. A hook
// that knows of no runs does not look.
func (h *hook) runInFlight() (run string, limit int64) {
	if len(h.Runs.Dirs) == 0 && h.Runs.MaxCost == 0 {
		return "", 0
	}
	view, err := h.box.View()
	if err != nil {
		return "", 0 // the transaction says why
	}
	defer func() { _ = view.Close() }() // it was only read
	d := view.InFlight()
	if d == nil {
		return "", 0
	}
	return enforce.RunInFlight(view, d, h.Runs.MaxCost)
}
