package inbox

import "slices"

// enter begins the span of an entry that was delivered, or whose turn has begun.
func (t *Tx) enter(d *Delivery) { t.begin(d.SessionID, spanOf(d), false) }

// leave ends the span of the entry in flight, which is settled. answered says that its
// text certainly is a line of a user in the transcript.
func (t *Tx) leave(d *Delivery, answered bool) {
	s := t.readAccount().Session(d.SessionID)
	if s != nil && len(s.Spans) > 0 && s.Spans[len(s.Spans)-1].is(d) {
		t.begin(d.SessionID, Span{}, answered)
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
	*s = Span{From: s.From, mark: s.mark, behind: s.behind}
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
	length, known := t.positions[session]
	if !known {
		return
	}
	s := t.readAccount().Session(session)
	if s == nil {
		t.openSession(session, length, true)
		return
	}
	t.begin(session, Span{}, false)
}

// begin begins a span at the position that was given for the session.
func (t *Tx) begin(session string, span Span, answered bool) {
	if session == "" || len(session) > maxSessionName {
		return
	}
	a := t.changeAccount()
	length, given := t.positions[session]
	s := a.Session(session)
	if s == nil {
		s = t.openSession(session, length, false)
	} else {
		s = a.front(*s)
	}
	s.Closed = false
	span.From, span.behind = -1, answered
	if r := t.readings[session]; given {
		span.From = length
	} else if r != nil {
		span.From = r.Read
	}
	last := &s.Spans[len(s.Spans)-1]
	switch {
	case last.Outside() && span.Outside() && !last.history:
		return // goes on
	case last.Outside() && !last.history && last.From == span.From && span.From >= 0:
		span.mark, span.behind = last.mark, last.behind || span.behind
		*last = span // nothing lies between
	default:
		s.Spans = append(s.Spans, span)
	}
	s.merge()
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

// openSession begins the account of a session, whose transcript has that length. If that
// is more than nothing, and the session has just begun, it is an old one that goes on:
// what it spent before is nobody's, unless it was known here.
func (t *Tx) openSession(session string, length int64, began bool) *SessionAccount {
	s := SessionAccount{ID: session, Spans: []Span{{}}}
	if length > 0 || !began {
		if c, found := t.lastCharged(session); found {
			s.Meter, s.Charged = c.meter, c.charged
			began = false
		}
	}
	if began && length > 0 {
		s.Spans = []Span{{history: true}, {From: length}}
	}
	return t.changeAccount().front(s)
}
