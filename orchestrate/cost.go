package orchestrate

import (
	"strings"

	"heartbeat/internal/money/book"
	"heartbeat/internal/money/price"
	"heartbeat/orchestrate/effect"
)

// Cost returns what the entries of a run have cost, as far as the lines are kept: in all, and by the id of the
// effect. The entries' ids begin with the run's.
func (b *Bridge) Cost() (all price.Price, effects map[string]price.Price, err error) {
	effects = map[string]price.Price{}
	add := func(l price.Line) {
		if strings.HasPrefix(l.ID, b.entryID("", 1)) {
			one := effects[effect.IDIn(l.ID)]
			one.Amount, one.Model = one.Plus(l.Amount), l.Model
			all.Amount, effects[effect.IDIn(l.ID)] = all.Plus(l.Amount), one
		}
	}
	now, err := book.Spending(b.Box, add)
	if err != nil {
		return all, nil, err
	}
	for l := range now.Open() {
		add(l)
	}
	return all, effects, nil
}

// costOf returns what the entries of an effect have cost, as the metadata of its result, or nil if that is unknown.
// An unreadable price must not keep a result from its run.
func (s *step) costOf(effect string) []byte {
	if s.costs == nil {
		var err error
		if _, s.costs, err = s.Cost(); err != nil {
			s.report.Notes = append(s.report.Notes, "what its entries have cost is not known: "+err.Error())
			s.costs = map[string]price.Price{}
		}
	}
	if cost := s.costs[effect]; !cost.IsZero() {
		return cost.JSON()
	}
	return nil
}
