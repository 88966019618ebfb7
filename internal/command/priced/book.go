package priced

import (
	"heartbeat/inbox"
	"heartbeat/internal/charging"
	"heartbeat/internal/price"
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
func Load(box *inbox.Inbox) func(session string) *inbox.Reading { return charging.Load(box.Dir()) }

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

// Complete reports whether no more can be known in a moment of an entry whose outcome says
// was: its price has an end. The account may not have the outcome yet, where its line is just
// being written.
func (b *Book) Complete(entryID string, first int64, was price.Fields) bool {
	return first == 0 || !b.read().Pending(entryID, first) && !b.Price(entryID, first, was).Open
}
