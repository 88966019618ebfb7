package inbox

import (
	"math"
	"slices"

	"heartbeat/internal/money/price"
)

// part is what one span has cost and was not charged.
type part struct {
	price.Amount
	complete bool // the next span has begun
	// end is where, and upTo what was spent by then.
	end  int64
	upTo price.Amount
}

// endOr is where the part ends, or open where it goes on.
func (p part) endOr(open int64) int64 {
	if p.complete {
		return p.end
	}
	return open
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
		if m, ok := r.beginning(s.Spans[0], s.Spans[0].From); ok {
			at = m.Offset
		} else {
			known = s.Spans[0].From == 0
		}
	}
	for i := range parts {
		p := &parts[i]
		if i+1 < len(parts) && known && s.Spans[i+1].From >= 0 {
			from := max(s.Spans[i+1].From, at)
			if s.Spans[i].turned {
				from = max(from, at+1)
			}
			if m, ok := r.beginning(s.Spans[i+1], from); ok {
				p.Amount = spentSince(m.Before, before)
				p.complete, p.end, p.upTo = true, m.Offset, most(m.Before, before)
				before, at = p.upTo, m.Offset
				continue
			}
		}
		p.Amount, p.upTo = spentSince(r.Spent, before), most(r.Spent, before)
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

// late bounds how long the client takes to write a line, in milliseconds. One that is
// older by more was not late: the clock was set back.
const late = 60_000

// beginning is the line with which a span begins, at or behind a position. Lines that
// were written late, and belong to what was before, are older than the span.
func (r *Reading) beginning(s Span, position int64) (Boundary, bool) {
	m, ok := r.boundary(position)
	for ok && m.At != 0 && m.At < s.since && m.At >= s.since-late {
		m, ok = r.boundary(m.Offset + 1)
	}
	return m, ok
}

// spentSince is what was spent between two readings, never less than nothing. No dollars
// for requests are not 0 dollars: no price of them is known.
func spentSince(now, before price.Amount) price.Amount {
	d := most(now, before).Minus(before)
	d.Dollars = now.Dollars && (d.Nanos > 0 || d.Requests == 0)
	return d
}

// most takes the larger of each count: a counter that lost something is not charged
// twice for it.
func most(a, b price.Amount) price.Amount {
	return price.Amount{
		Nanos: max(a.Nanos, b.Nanos), Dollars: a.Dollars || b.Dollars, Requests: max(a.Requests, b.Requests),
		Unpriced: max(a.Unpriced, b.Unpriced), Said: max(a.Said, b.Said),
		Tokens: price.Tokens{
			Input: max(a.Tokens.Input, b.Tokens.Input), Output: max(a.Tokens.Output, b.Tokens.Output),
			CacheRead: max(a.Tokens.CacheRead, b.Tokens.CacheRead), CacheWrite: max(a.Tokens.CacheWrite, b.Tokens.CacheWrite),
		},
	}
}

// charge books what is certain. Spans whose end is known are done.
func (t *Tx) charge(s *SessionAccount, r *Reading) {
	was, first, placed := *s, s.Spans[0], false
	for i := range s.Spans {
		if s.Spans[i].From < 0 {
			s.Spans[i].From, placed = r.Read, true
		}
	}
	t.chargeLate(s, r)
	for _, p := range s.uncharged(r) {
		if !p.complete {
			break
		}
		s.Charged = p.upTo
		s.keepLate(s.Spans[0], p.end, r)
		t.book(t.changeAccount(), s, s.Spans[0], p.Amount, p.end, r)
		s.Spans = slices.Delete(s.Spans, 0, 1)
		s.Spans[0].mark = p.end
	}
	if (r.Over || r.Gone) && len(s.Spans) > 0 {
		p := s.uncharged(r)[0]
		s.Charged = p.upTo
		t.book(t.changeAccount(), s, s.Spans[0], p.Amount, math.MaxInt64, r)
		s.Closed = true
	}
	if placed || s.Charged != was.Charged || s.Closed != was.Closed || s.Spans[0] != first {
		t.changeAccount()
	}
	if r.Gone {
		t.changeAccount().close(s.ID)
	}
}

// enter begins the span of an entry that was delivered, or whose turn has begun.
func (t *Tx) enter(d *Delivery) { t.begin(d.SessionID, spanOf(d)) }

// LeaveTurn says that the turn of the entry in flight is over, since its session has begun
// another: what is spent from there on is the entry's no more. [Tx.Position] says where.
func (t *Tx) LeaveTurn() {
	if t.inFlight != nil {
		t.leave(t.inFlight)
	}
}

// leave ends the span of the entry in flight, which is settled.
func (t *Tx) leave(d *Delivery) {
	s := t.readAccount().Session(d.SessionID)
	if s != nil && len(s.Spans) > 0 && s.Spans[len(s.Spans)-1].is(d) {
		t.begin(d.SessionID, Span{})
	}
}

// neverArrived makes a delivery cost nothing: what was spent since was for something
// else.
func (t *Tx) neverArrived(d *Delivery) {
	s := t.readAccount().Session(d.SessionID)
	if s == nil || len(s.Spans) == 0 {
		return
	}
	last := &s.Spans[len(s.Spans)-1]
	if !last.is(d) {
		return
	}
	last.vacate()
	t.changeAccount()
	s.merge()
}

// vacate leaves a span to no entry.
func (s *Span) vacate() {
	*s = Span{From: s.From, since: s.since, mark: s.mark, turned: s.turned}
}

// rebind moves the beginning of a delivery's span to the turn that it turned out to be.
// What was spent before was for something else, unless the delivery goes on after a check.
func (t *Tx) rebind(d *Delivery) {
	if _, known := t.positions[d.SessionID]; !known {
		return
	}
	if d.Check == nil || d.Check.Status != CheckFailed {
		t.neverArrived(d)
	} else if s := t.readAccount().Session(d.SessionID); s != nil && len(s.Spans) > 0 && s.Spans[len(s.Spans)-1].is(d) {
		return
	}
	t.enter(d)
}

// arrive notes that a session begins, or goes on in another process: no turn of an entry
// goes on in it by itself.
func (t *Tx) arrive(session string) {
	p, known := t.positions[session]
	if !known {
		return
	}
	if t.readAccount().Session(session) == nil {
		t.openSession(session, p.length, true)
		return
	}
	t.begin(session, Span{})
}

// begin begins a span at the position that was given for the session.
func (t *Tx) begin(session string, span Span) {
	if session == "" || len(session) > maxSessionName {
		return
	}
	a := t.changeAccount()
	p, given := t.positions[session]
	s := a.Session(session)
	if s == nil {
		s = t.openSession(session, p.length, false)
	} else {
		s = a.front(*s)
	}
	t.cutOff(s)
	s.Closed = false
	span.From = -1
	if r := t.readings[session]; given {
		span.From, span.since = p.length, p.since
	} else if r != nil {
		span.From = r.Read
	}
	last := &s.Spans[len(s.Spans)-1]
	if p.turned {
		last.turned = true
		t.positions[session] = position{length: p.length, since: p.since}
	}
	switch {
	case last.Outside() && span.Outside() && !last.history:
		return // goes on
	case last.Outside() && !last.history && !last.turned && last.From == span.From && span.From >= 0:
		span.mark = last.mark
		*last = span // nothing lies between
	default:
		s.Spans = append(s.Spans, span)
	}
	s.merge()
}

// cutOff is for a transcript that is shorter than it was: it was cut, or written anew in its
// place. The lines are gone that told the spans from each other, so that all that is not
// charged yet is the last one's, which goes on at the transcript's end.
func (t *Tx) cutOff(s *SessionAccount) {
	end := t.positions[s.ID].length
	if !s.isBeyond(end) {
		return
	}
	last := &s.Spans[len(s.Spans)-1]
	last.From, last.mark, last.turned = min(last.From, end), max(1, end-1), false
	if first := s.Spans[0]; first.history && len(s.Spans) > 1 {
		s.Spans = []Span{{history: true}, *last}
	} else {
		s.Spans = []Span{*last}
	}
	t.changeAccount()
}

// isBeyond reports whether spans lie beyond a transcript's end.
func (s *SessionAccount) isBeyond(end int64) bool {
	return end > 0 && slices.ContainsFunc(s.Spans, func(of Span) bool { return of.From > end || of.mark > end })
}

// IsCut reports whether a session's transcript is shorter at its [Tx.Position] than what was
// read of it.
func (t *Tx) IsCut(session string, read int64) bool {
	end := t.positions[session].length
	return end > 0 && end < read
}

// merge makes one of neighbours that belong to nothing, and of the oldest where there are
// too many.
func (s *SessionAccount) merge() {
	for i := len(s.Spans) - 1; i > 0; i-- {
		if a, b := s.Spans[i-1], s.Spans[i]; a.Outside() && b.Outside() && !a.history {
			s.Spans = slices.Delete(s.Spans, i, i+1)
		}
	}
	for len(s.Spans) > maxSpans {
		s.Spans[0].vacate()
		s.Spans = slices.Delete(s.Spans, 1, 2)
	}
}

// isCharged reports whether a session that is not accounted for was charged all that its
// meter says.
func (t *Tx) isCharged(r *Reading) bool {
	c, found := t.lastCharged(r.Session)
	return found && spentSince(r.Spent, c.charged).IsZero()
}

// openSession begins the account of a session, whose transcript has that length. If that
// is more than nothing, and the session has just begun, it is an old one that goes on:
// what it spent before is nobody's, unless it was known here.
func (t *Tx) openSession(session string, length int64, began bool) *SessionAccount {
	s := SessionAccount{ID: session, Spans: []Span{{}}}
	found := false
	if length > 0 || !began {
		var c Cost
		if c, found = t.lastCharged(session); found {
			s.Charged = c.charged
		}
	}
	switch {
	case began && found:
		s.Spans[0].From = length
	case began && length > 0:
		s.Spans = []Span{{history: true}, {From: length}}
	}
	return t.changeAccount().front(s)
}
