package meter

import (
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
	s.last().own.Said += max(0, total-from)
	s.topUp()
	s.summary = noSummary
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
	s.last().own.Said += max(0, delta)
	if s.quiet = r.Usage != nil && *r.Usage == (price.Tokens{}); s.quiet {
		s.topUp()
		s.summary = noSummary
	}
}

// clientOf is the process that said a total, which becomes the first.
func (s *State) clientOf(r Reading) *client {
	i := slices.IndexFunc(s.clients, func(c client) bool { return c.name == r.Client })
	c := client{name: r.Client, total: s.stated, fell: -1}
	if i >= 0 {
		c = s.clients[i]
		s.clients = slices.Delete(s.clients, i, i+1)
	} else if r.Total < s.stated {
		c.total = 0 // it did not take up the old total
	}
	s.clients = slices.Insert(s.clients, 0, c)
	s.clients = s.clients[:min(len(s.clients), maxClients)]
	return &s.clients[0]
}

// topUp gives the last summary what the client's total has beyond the transcript, since a summary
// is all that the client does not show there and that costs more than a little. A person's own
// prices are not the client's, so that there the difference tells nothing.
func (s *State) topUp() {
	if s.summary == noSummary {
		return
	}
	if _, own := s.prices().Of(s.Model); own != "" {
		return
	}
	var sum price.Amount
	for _, p := range s.parts {
		sum = sum.Plus(p.own)
	}
	if more := sum.Said - sum.Nanos; more > 0 && sum.Unpriced == 0 {
		s.book(price.Amount{Nanos: more, Dollars: true}, s.partFrom(s.summary), s.modelAt(s.Model))
		s.summary = noSummary
	}
}
