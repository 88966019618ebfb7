// Package book has what entries cost, as far as it is known now, for those who show it.
package book

import (
	"encoding/json"
	"slices"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/flat"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/price"
)

// Book has what entries cost as far as it is known now: an entry's outcome is written before its last request has a
// price. The first call reads the costs. If they cannot be read, the outcome's own price counts, with a note.
type Book struct {
	box    *inbox.Inbox
	wanted map[string]bool // entry ids; nil wants all
	prices *Prices         // nil until they are needed
	notes  []string
	failed bool // the note about unreadable prices was added
}

// New returns the book of an inbox.
func New(box *inbox.Inbox) *Book { return &Book{box: box} }

// Want limits the book to these entry ids. Costs of other entries are not decoded.
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

func (b *Book) read() *Prices {
	if b.prices != nil {
		return b.prices
	}
	p, err := readOf(b.box, b.wanted)
	if b.prices = p; err == nil {
		b.notes = append(b.notes, p.Warnings...)
		return p
	}
	if b.prices = new(Prices); !b.failed {
		b.failed = true
		b.notes = append(b.notes, "prices are shown as they were when the entries were settled: "+err.Error())
	}
	return b.prices
}

// Price returns what an entry cost. was is the price in its outcome: see [Prices.Of].
func (b *Book) Price(entryID string, firstSeq int64, was inbox.Cost) price.Price {
	if firstSeq == 0 {
		return price.Of(was)
	}
	return b.read().Of(entryID, firstSeq, was)
}

// Result returns a result with the price known now. The line, unless nil, also gets the price on each model.
func (b *Book) Result(r inbox.Result, line []byte) (inbox.Result, []byte) {
	if r.FirstSeq == 0 {
		return r, line
	}
	p, was := b.Price(r.EntryID, r.FirstSeq, r.Cost), price.Of(r.Cost)
	r.Cost = p.Cost()
	if models := b.read().Models(r.EntryID, r.FirstSeq); line != nil && (p != was || models != nil) {
		line = withPrice(line, p, models)
	}
	return r, line
}

// Letter gives a dead letter the price that is known now.
func (b *Book) Letter(l *inbox.DeadLetter) {
	l.Cost = b.Price(l.EntryID, l.FirstSeq, l.Cost).Cost()
}

// complete reports whether a price is final. An outcome whose line is just being written may not be booked yet.
func (b *Book) complete(entryID string, firstSeq int64) bool {
	if firstSeq == 0 {
		return true
	}
	p := b.read()
	return !p.settling && !slices.ContainsFunc(p.open, func(o account.Uncharged) bool {
		return o.GoesOn && o.EntryID == entryID && o.FirstSeq == firstSeq
	})
}

// members are those of a price, some of them only of older releases.
var members = []string{"cost_usd", "tokens", "requests", "unpriced", "model", "context_percent", "client_usd", "models", "cost_divided", "cost_open"}

func withPrice(line []byte, p price.Price, models []price.ByModel) []byte {
	m, err := flat.Parse(line)
	if err != nil {
		return line
	}
	var o flat.Object
	m.Without(members, o.Raw)
	_ = p.Members(flat.To(&o)) // only reading can fail
	if len(models) > 0 {
		var list []inbox.Cost
		for _, of := range models {
			list = append(list, price.Price{Amount: of.Amount, Model: of.Model}.Cost())
		}
		text, _ := json.Marshal(list) // no price fails
		o.Raw("models", text)
	}
	return o.End()
}

// Patience is how long a thing waits for its price, which the client writes a moment after the turn's end.
const Patience = 3 * time.Second

// Queue holds things back until their prices are complete, so that each is shown once and in order. The prices of those
// that it returns are in the book.
type Queue[T any] struct {
	book interface {
		Want(entryIDs ...string)
		complete(entryID string, firstSeq int64) bool
	}
	outcome func(T) (entryID string, firstSeq int64)
	held    []held[T]
}

type held[T any] struct {
	thing T
	since time.Time
}

// QueueOf returns an empty queue for things whose price is in a book. outcome returns the id and the commit of the
// first delivery of the entry that a thing is about, and zero values for a thing without a price.
func QueueOf[T any](b *Book, outcome func(T) (entryID string, firstSeq int64)) *Queue[T] {
	return &Queue[T]{book: b, outcome: outcome}
}

// Add appends things that wait from now on.
func (q *Queue[T]) Add(now time.Time, things ...T) {
	for _, thing := range things {
		q.held = append(q.held, held[T]{thing, now})
	}
}

// Ready removes and returns the first things, up to one that is not complete and has not waited for [Patience].
func (q *Queue[T]) Ready(now time.Time) []T {
	return q.pop(func(first held[T]) bool {
		return q.book.complete(q.outcome(first.thing)) || now.Sub(first.since).Abs() >= Patience // a clock may be set back
	})
}

// Rest removes and returns all things.
func (q *Queue[T]) Rest() []T { return q.pop(func(held[T]) bool { return true }) }

// pop removes and returns the first things, up to one for which may returns false.
func (q *Queue[T]) pop(may func(held[T]) bool) (taken []T) {
	var ids []string
	for _, h := range q.held {
		id, _ := q.outcome(h.thing)
		ids = append(ids, id)
	}
	q.book.Want(ids...)
	for len(q.held) > 0 && may(q.held[0]) {
		taken, q.held = append(taken, q.held[0].thing), q.held[1:]
	}
	return taken
}
