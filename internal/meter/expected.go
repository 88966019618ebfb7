package meter

import "math/bits"

// Expected is what was spent, in billionths of a dollar, with a guess at the requests
// whose price the client has not said yet: for their tokens as much as the others cost.
// sure says that there are none of those, known that there is something to guess from.
func (s *State) Expected() (nanos int64, sure, known bool) {
	var unpriced, all, paid, held int64
	for _, p := range s.parts {
		unpriced = addWeight(unpriced, p.weight)
		all = addWeight(all, p.own.Tokens.Weight())
		paid += p.own.Nanos
	}
	for _, r := range s.recent {
		if !r.priced {
			unpriced = addWeight(unpriced, r.tokens.Weight())
		}
	}
	for _, h := range s.held {
		held += h.nanos
	}
	priced := all - unpriced
	switch {
	case unpriced == 0:
		return s.Spent.Nanos, true, true
	case priced <= 0 || paid <= 0:
		return s.Spent.Nanos, false, held > 0
	}
	hi, lo := bits.Mul64(uint64(paid), uint64(unpriced))
	if hi >= uint64(priced) {
		return s.Spent.Nanos, false, false
	}
	guess, _ := bits.Div64(hi, lo, uint64(priced))
	return s.Spent.Nanos + max(0, int64(min(guess, 1<<62))-held), false, true
}
