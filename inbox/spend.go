package inbox

import (
	"slices"

	"heartbeat/internal/price"
)

// part is what one span has cost and was not charged.
type part struct {
	price.Amount
	divided bool
	// complete says that the next span has begun.
	complete bool
	// end is where, and upTo what was spent by then.
	end  int64
	upTo price.Amount
}

// uncharged is what was not charged yet of each span, as a reading tells: nil tells
// nothing.
func (s *SessionAccount) uncharged(r *Reading) []part {
	parts := make([]part, len(s.Spans))
	if r == nil || len(parts) == 0 {
		return parts
	}
	before, at, known := s.Charged, s.Spans[0].mark, true
	if at == 0 {
		if m, ok := r.boundary(s.Spans[0].From); ok {
			at = m.Offset
		} else {
			known = s.Spans[0].From == 0
		}
	}
	for i := range parts {
		p := &parts[i]
		if i+1 < len(parts) && known && s.Spans[i+1].From >= 0 {
			next := s.Spans[i+1]
			from := max(next.From, at)
			if next.behind {
				from = max(next.From, at+1)
			}
			if m, ok := r.boundary(from); ok {
				p.Amount, p.divided = spentSince(m.Before, before), m.Divided
				p.complete, p.end, p.upTo = true, m.Offset, most(m.Before, before)
				before, at = p.upTo, m.Offset
				continue
			}
		}
		p.Amount, p.upTo = spentSince(r.Spent, before), most(r.Spent, before)
		p.divided = r.Divided
		break
	}
	return parts
}

func (r *Reading) boundary(position int64) (Boundary, bool) {
	if r.Boundary == nil || position < 0 {
		return Boundary{}, false
	}
	return r.Boundary(position)
}

// spentSince is what was spent between two readings, never less than nothing.
func spentSince(now, before price.Amount) price.Amount {
	d := most(now, before).Minus(before)
	d.Dollars = now.Dollars
	return d
}

// most takes the larger of each count: a counter that lost something is not charged
// twice for it.
func most(a, b price.Amount) price.Amount {
	return price.Amount{
		Nanos: max(a.Nanos, b.Nanos), Dollars: a.Dollars || b.Dollars, Requests: max(a.Requests, b.Requests),
		Tokens: price.Tokens{
			Input: max(a.Tokens.Input, b.Tokens.Input), Output: max(a.Tokens.Output, b.Tokens.Output),
			CacheRead: max(a.Tokens.CacheRead, b.Tokens.CacheRead), CacheWrite: max(a.Tokens.CacheWrite, b.Tokens.CacheWrite),
		},
	}
}

func least(a, b price.Amount) price.Amount {
	return price.Amount{
		Nanos: min(a.Nanos, b.Nanos), Dollars: a.Dollars && b.Dollars, Requests: min(a.Requests, b.Requests),
		Tokens: price.Tokens{
			Input: min(a.Tokens.Input, b.Tokens.Input), Output: min(a.Tokens.Output, b.Tokens.Output),
			CacheRead: min(a.Tokens.CacheRead, b.Tokens.CacheRead), CacheWrite: min(a.Tokens.CacheWrite, b.Tokens.CacheWrite),
		},
	}
}

// charge books what is certain. Spans whose end is known are done.
func (t *Tx) charge(s *SessionAccount, r *Reading) {
	was := s.state()
	s.follow(r)
	for i := range s.Spans {
		if s.Spans[i].From < 0 {
			s.Spans[i].From = r.Read
		}
	}
	t.chargeLate(s, r)
	for _, p := range s.uncharged(r) {
		if !p.complete {
			break
		}
		s.Charged = p.upTo
		t.book(t.changeAccount(), s, s.Spans[0], p.Amount, r, p.divided)
		s.Spans = slices.Delete(s.Spans, 0, 1)
		s.Spans[0].mark = p.end
		s.unpriced, s.unpricedHere = s.unpriced+s.unpricedHere, 0
	}
	if r.Over && len(s.Spans) > 0 {
		p := s.uncharged(r)[0]
		s.Charged = p.upTo
		t.book(t.changeAccount(), s, s.Spans[0], p.Amount, r, p.divided)
		s.Closed = true
	}
	if s.state() != was {
		t.changeAccount()
	}
}

// state is what tells that an account has changed.
func (s *SessionAccount) state() string { return string(s.encode()) }

// follow goes on with a counter that may have lost something: a power loss takes back
// what was not synced, and may leave an older file, or none. Then a new counter counts
// the transcript again, from its start; what it cannot count again is what clients
// said that are gone, and what the one that runs had said before.
//
// What was charged is a point in the client's total, too. So it is found in any counter
// by how far the client has got since, if it is the same client. Another one began at
// what the transcript says, and whatever it adds is new.
func (s *SessionAccount) follow(r *Reading) {
	switch {
	case s.Meter == "":
	case s.Meter != r.Meter:
		s.Charged = least(s.Charged, price.Amount{Nanos: s.Charged.Nanos, Dollars: s.Charged.Dollars, Tokens: r.Spent.Tokens, Requests: r.Spent.Requests})
		s.lost = true
		if r.Client == "" {
			s.Charged.Nanos = min(s.Charged.Nanos, r.Spent.Nanos)
		}
	}
	s.Meter = r.Meter
	if r.Client == "" {
		return
	}
	if s.lost || s.client != r.Client && s.client != "" {
		from := r.Resumed
		if s.client != "" {
			from = min(s.base, r.Resumed)
			if s.client == r.Client {
				from = s.base
			}
		}
		point := r.Spent.Nanos - max(0, r.Total-from)
		if !s.lost {
			point = min(point, s.Charged.Nanos)
		}
		s.Charged.Nanos = min(max(0, point), r.Spent.Nanos)
	}
	s.lost, s.client = false, r.Client
	s.base = r.Total - (r.Spent.Nanos - s.Charged.Nanos)
}
