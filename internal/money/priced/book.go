// Package priced shows results and dead letters with what they cost as it is known
// now: their lines were written before the last request had its price.
package priced

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/flat"
	"heartbeat/internal/money/charging"
	"heartbeat/internal/money/price"
)

// Book tells what entries cost, as it is known now. It reads when it is asked first. A
// price that cannot be read is the one that the line has, with a note.
type Book struct {
	box    *inbox.Inbox
	wanted map[string]bool // entry ids; nil wants all
	prices *inbox.Prices   // nil until they are needed
	notes  []string
	failed bool // it was noted that prices cannot be read
}

// Load returns what reads the meters of an inbox's sessions.
func Load(box *inbox.Inbox) func(session string) *inbox.Reading { return charging.Load(box) }

// Of is the book of an inbox.
func Of(box *inbox.Inbox) *Book { return &Book{box: box} }

// Want says which entries it will be asked for, by their entry ids, in place of all: the
// costs of others are not decoded.
func (b *Book) Want(entryIDs ...string) {
	b.wanted, b.prices = map[string]bool{}, nil
	for _, id := range entryIDs {
		b.wanted[id] = true
	}
}

// Notes returns sentences about what could not be read, each once.
func (b *Book) Notes() []string {
	notes := b.notes
	b.notes = nil
	return notes
}

// read returns the prices, or nil.
func (b *Book) read() *inbox.Prices {
	if b.prices != nil {
		return b.prices
	}
	var p *inbox.Prices
	var err error
	if b.wanted != nil {
		p, err = b.box.PricesOf(Load(b.box), b.wanted)
	} else {
		p, err = b.box.Prices(Load(b.box))
	}
	switch {
	case err != nil && !b.failed:
		b.failed = true
		b.notes = append(b.notes, "prices are shown as they were when the entries were settled: "+err.Error())
		fallthrough
	case err != nil:
		p = &inbox.Prices{}
	default:
		b.notes = append(b.notes, p.Warnings...)
	}
	b.prices = p
	return p
}

// Result returns a result, and its line if there is one, with the price that is known now.
func (b *Book) Result(r inbox.Result, line []byte) (inbox.Result, []byte) {
	if r.FirstSeq == 0 {
		return r, line
	}
	if p, known := b.read().OfResult(r); known && p != r.Price() {
		if r.Fields = p.Fields(); line != nil {
			line = Line(line, p)
		}
	}
	return r, line
}

// Letter gives a dead letter the price that is known now.
func (b *Book) Letter(l *inbox.DeadLetter) {
	if l.FirstSeq == 0 {
		return
	}
	if p, known := b.read().OfLetter(*l); known {
		l.Fields = p.Fields()
	}
}

// Price is what an entry cost whose outcome says was; first is the commit of its first
// delivery, 0 if that is not known.
func (b *Book) Price(entryID string, first int64, was price.Fields) price.Price {
	if first == 0 {
		return was.Price()
	}
	p, known := b.read().OfResult(inbox.Result{EntryID: entryID, FirstSeq: first, Fields: was})
	if !known {
		return was.Price()
	}
	return p
}

// Complete reports whether no more can be known of an entry in a moment: its price has an end.
// The account may not have the outcome yet, where its line is just being written.
func (b *Book) Complete(entryID string, first int64) bool {
	return first == 0 || !b.read().Pending(entryID, first)
}

// members are those that a price has.
var members = []string{"cost_usd", "tokens", "requests", "unpriced", "model", "context_percent", "client_usd", "cost_divided", "cost_open"} // the last two of older releases

// Line returns a line of a file with the price in place of the one that it was written
// with. It stays byte for byte where that is the same, and where it is no object.
func Line(line []byte, p price.Price) []byte {
	m, err := flat.Parse(line)
	if err != nil {
		return line
	}
	var was price.Price
	if was.Members(flat.From(m)) == nil && m.Err() == nil && was == p {
		return line
	}
	var o flat.Object
	m.Without(members, o.Raw)
	_ = p.Members(flat.To(&o)) // only reading can fail
	return o.End()
}

// Patience is how long something that is followed waits for its price: the client says
// it a moment after the turn has ended.
const Patience = 3 * time.Second

// Queue holds back what is followed until its price is complete, so that each thing is
// shown once and in its order. The zero value is empty.
type Queue[T any] struct{ held []held[T] }

type held[T any] struct {
	thing T
	since time.Time
}

// Add puts things behind those that wait.
func (q *Queue[T]) Add(now time.Time, things ...T) {
	for _, thing := range things {
		q.held = append(q.held, held[T]{thing, now})
	}
}

// All are the things that wait.
func (q *Queue[T]) All() (all []T) {
	for _, h := range q.held {
		all = append(all, h.thing)
	}
	return all
}

// Ready takes out the first things, up to one that is not complete and has not waited
// for [Patience].
func (q *Queue[T]) Ready(now time.Time, complete func(T) bool) (ready []T) {
	for len(q.held) > 0 {
		first := q.held[0]
		waited := now.Sub(first.since).Abs() // a clock may be set back
		if !complete(first.thing) && waited < Patience {
			break
		}
		ready, q.held = append(ready, first.thing), q.held[1:]
	}
	return ready
}

// Rest takes out all.
func (q *Queue[T]) Rest() []T {
	all := q.All()
	q.held = nil
	return all
}
