package inbox

import "slices"

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
// What was spent before was for something else.
func (t *Tx) rebind(d *Delivery) {
	if _, known := t.positions[d.SessionID]; !known {
		return
	}
	t.neverArrived(d)
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
	return found && c.meter == r.Meter && spentSince(r.Spent, c.charged).IsZero()
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
			s.Meter, s.Charged, s.boot, s.base = c.meter, c.charged, c.boot, c.base
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
