package meter

import (
	"math"
	"math/bits"
	"slices"

	"heartbeat/internal/price"
)

// state takes the total that the client writes into the transcript when it ends, and
// from which it goes on when the session is resumed.
func (s *State) state(total int64) {
	from := s.stated
	if len(s.clients) > 0 && total >= s.clients[0].total {
		from = s.clients[0].total
		s.clients[0].total = total
	}
	s.stated = total
	s.hold(max(0, total-from), s.main)
	s.Spent.Dollars = true
	s.give()
}

// say takes a total that a client said.
func (s *State) say(r Reading) {
	c := s.clientOf(r)
	delta := r.Total - c.total
	switch {
	case delta >= 0:
		c.total, c.fell = r.Total, -1
	case c.fell < 0:
		// One reading below the last may be an older one that came late.
		c.fell, delta = r.Total, 0
	default:
		delta = r.Total - c.fell // the client began anew
		c.total, c.fell = r.Total, -1
	}
	s.Spent.Dollars = true
	upTo := s.covered(c, r)
	if r.Usage != nil && *r.Usage == (price.Tokens{}) && upTo == s.main && len(s.held) == 0 && s.last().own.Requests > 0 && s.priced() {
		// The context was compacted, and the transcript does not have the summary yet,
		// which is a line of a user.
		s.loose += max(0, delta)
		return
	}
	s.hold(max(0, delta), upTo)
}

// priced reports whether every request has its dollars.
func (s *State) priced() bool {
	for i := range s.parts {
		if s.parts[i].weight > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(s.recent, func(r request) bool { return !r.priced })
}

// clientOf is the process that said a total, which becomes the first.
func (s *State) clientOf(r Reading) *client {
	i := slices.IndexFunc(s.clients, func(c client) bool { return c.name == r.Client })
	c := client{name: r.Client, total: s.stated, base: -1, fell: -1}
	if i >= 0 {
		c = s.clients[i]
		s.clients = slices.Delete(s.clients, i, i+1)
	} else {
		if r.Total < s.stated {
			c.total = 0 // it did not take up the old total
		}
		c.began = c.total
	}
	s.clients = slices.Insert(s.clients, 0, c)
	s.clients = s.clients[:min(len(s.clients), maxClients)]
	return &s.clients[0]
}

// covered is the number of the last request of the main transcript that a total is for.
//
// The client counts its requests itself, which tells even where all have the same
// usage. Where it does not say its count, its last request's usage tells whether the
// transcript has that one.
func (s *State) covered(c *client, r Reading) int64 {
	last, before := s.lastUsages()
	none := r.Usage == nil || *r.Usage == price.Tokens{}
	there := none || *r.Usage == last
	next := s.main + 1
	if there {
		next = s.main
	}
	switch {
	case s.behind:
		return s.main + 1
	case r.Requests < 0 && c.base < 0:
		if there {
			c.base = s.main // it has just started, and counts from its first request on
		}
		return next
	case r.Requests < 0:
		return next
	case none, c.base < 0 && there:
		// The last request was none that the transcript has, such as a summary: what
		// it has of others was there before.
		c.base = s.main - r.Requests
		return s.main
	case c.base < 0:
		return next
	}
	upTo := c.base + r.Requests
	if upTo == s.main || !there {
		c.off = 0
		return upTo
	}
	// Either the newest line is missing and looks like the one before it, or the two
	// count differently, which then stays so.
	if c.off++; before != (price.Tokens{}) && *r.Usage != before || c.off > 4 {
		c.off, c.base = 0, s.main-r.Requests
		return s.main
	}
	return upTo
}

// lastUsages are those of the last two requests of the main transcript.
func (s *State) lastUsages() (last, before price.Tokens) {
	number := s.main
	for i := len(s.recent) - 1; i >= 0 && number > s.main-2; i-- {
		if r := s.recent[i]; r.number == number && (i == 0 || s.recent[i-1].number < r.number) {
			if number == s.main {
				last = r.tokens
			} else {
				before = r.tokens
			}
			number--
		}
	}
	return last, before
}

// hold keeps growth of a total until the requests are there that it is for.
func (s *State) hold(nanos, upTo int64) {
	if n := len(s.held); n > 0 && s.held[n-1].upTo >= upTo {
		s.held[n-1].nanos += nanos
		return
	}
	s.held = append(s.held, held{nanos, upTo})
}

// give gives what is held to the requests that are there by now.
func (s *State) give() {
	for len(s.held) > 0 && s.held[0].upTo <= s.main {
		h := s.held[0]
		s.held = s.held[1:]
		s.divide(h.nanos, h.upTo)
	}
}

// giveAll gives what is held when nothing more will come.
func (s *State) giveAll() {
	for _, h := range s.held {
		s.divide(h.nanos, math.MaxInt64)
	}
	s.held = nil
	s.last().own.Nanos += s.loose
	s.loose = 0
	if s.Spent.Dollars {
		s.divide(0, math.MaxInt64)
	}
}

// divide gives dollars to the requests up to a number that have none yet, by the
// weight of their tokens. Without any, they are for something that the transcript
// does not have, such as a summary: then they belong to what goes on.
func (s *State) divide(nanos, upTo int64) {
	weights := make([]int64, len(s.parts))
	some, total := false, int64(0)
	for i := range s.parts {
		weights[i] = s.parts[i].weight
		some = some || weights[i] > 0
		s.parts[i].weight = 0
	}
	for i := range s.recent {
		if r := &s.recent[i]; !r.priced && r.number <= upTo {
			in := s.partFrom(r.part)
			weights[in] = addWeight(weights[in], max(1, r.tokens.Weight()))
			r.priced, some = true, true
		}
	}
	if nanos == 0 {
		return
	}
	if !some {
		s.last().own.Nanos += nanos
		return
	}
	parts, last := 0, 0
	for i, w := range weights {
		if total = addWeight(total, w); w > 0 {
			parts, last = parts+1, i
		}
	}
	rest := nanos
	for i, w := range weights {
		if w == 0 {
			continue
		}
		share := rest
		if i != last {
			hi, lo := bits.Mul64(uint64(nanos), uint64(w))
			q, _ := bits.Div64(hi, lo, uint64(total))
			share = min(int64(q), rest)
		}
		rest -= share
		s.parts[i].own.Nanos += share
		s.parts[i].divided = s.parts[i].divided || parts > 1
	}
}

// maxWeight keeps sums of weights from overflowing.
const maxWeight = math.MaxInt64 / (4 * maxOpen)

func addWeight(a, b int64) int64 { return min(maxWeight, a) + min(maxWeight, b) }

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
