package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"time"

	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
	"heartbeat/internal/money/price"
)

// Prices are what the entries have cost, as far as that is known at a moment: what was
// charged, and what the meters say beyond that.
type Prices struct {
	// Account is what was charged.
	Account Account
	// Warnings are sentences about lines that cannot be read, and were left out.
	Warnings []string

	box      *Inbox
	partial  bool // without what was charged
	entries  map[priceKey]*price.Price
	sessions map[string]price.Amount
	open     []Cost
	goesOn   map[priceKey]bool // entries whose spending has no certain end yet
	extra    price.Amount      // of open
	outside  price.Amount      // of extra
	day      string
	models   texts
	settling bool // what was charged last may not be in the file yet
}

// priceKey names an entry: see [Cost].
type priceKey struct {
	entryID  string
	firstSeq int64
}

// Prices reads .costs.jsonl, and asks load for the meter of each session that may still
// have something to charge; load may be nil, and returns nil if there is no meter. It
// takes no lock and writes nothing.
func (b *Inbox) Prices(load func(session string) *Reading) (*Prices, error) {
	p := b.newPrices()
	return p, p.read(load, nil, p.add)
}

// PricesOf is [Inbox.Prices] for a few entries, by their entry ids: it decodes no other
// lines. Sessions have no sums then.
func (b *Inbox) PricesOf(load func(session string) *Reading, entryIDs map[string]bool) (*Prices, error) {
	p := b.newPrices()
	return p, p.read(load, func(line []byte) bool { return ofEntry(line, entryIDs) }, p.add)
}

// ofEntry reports whether a line of .costs.jsonl, as it is written here, is of one of
// the entries.
func ofEntry(line []byte, entryIDs map[string]bool) bool {
	_, rest, found := bytes.Cut(line, []byte(`"entry_id":"`))
	end := bytes.IndexByte(rest, '"')
	return found && end >= 0 && entryIDs[string(rest[:end])]
}

// Spending is [Inbox.Prices] without what was charged to settled entries and to sessions.
// It reads .costs.jsonl only if each is not nil, and calls that for its lines, which are
// those that the rest does not count again.
func (b *Inbox) Spending(load func(session string) *Reading, each func(Cost)) (*Prices, error) {
	p := b.newPrices()
	p.partial = true
	return p, p.read(load, nil, each)
}

func (b *Inbox) newPrices() *Prices {
	return &Prices{box: b, entries: map[priceKey]*price.Price{}, sessions: map[string]price.Amount{}, day: b.today(), models: texts{}, goesOn: map[priceKey]bool{}}
}

// read takes one view of it all. It decodes the lines that may be wanted; nil wants all.
func (p *Prices) read(load func(session string) *Reading, wanted func(line []byte) bool, each func(Cost)) (err error) {
	v, err := p.box.settledView()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	p.settling = v.Settling()
	if p.Account, err = v.Account(); err != nil {
		return err
	}
	if each != nil && v.tx.writtenHere() {
		p.Warnings, err = p.box.costsUpTo(v.tx.st.Ends[journal.Costs].At, wanted, func(c Cost) bool {
			each(c)
			return true
		})
		if err != nil {
			return err
		}
	}
	if load != nil {
		p.addOpen(load)
	}
	return nil
}

// settledView is a view whose commit has reached the files, if that is so in a moment.
func (b *Inbox) settledView() (*View, error) {
	for try := 1; ; try++ {
		v, err := b.View()
		if err != nil || !v.Settling() || try == corruptTries {
			return v, err
		}
		if err := v.Close(); err != nil {
			return nil, err
		}
		time.Sleep(time.Duration(try) * time.Millisecond)
	}
}

// today is the local date.
func (b *Inbox) today() string { return b.opts.Now().Local().Format(time.DateOnly) }

func (p *Prices) add(c Cost) {
	p.sessions[c.SessionID] = p.sessions[c.SessionID].Plus(c.Amount)
	if c.Outside() {
		return
	}
	key := priceKey{c.EntryID, c.FirstSeq}
	of := p.entries[key]
	if of == nil {
		of = &price.Price{}
		key.entryID = strings.Clone(c.EntryID) // not the whole line
		p.entries[key] = of
	}
	of.Amount = plusOfEntry(of.Amount, c.Amount)
	if c.Model != "" {
		if of.Model != c.Model {
			of.Model = p.models.once(c.Model)
		}
	}
}

// texts keeps each text once: those of a line keep all of it in memory.
type texts map[string]string

func (t texts) once(text string) string {
	if kept, there := t[text]; there {
		return kept
	}
	text = strings.Clone(text)
	t[text] = text
	return text
}

// addOpen adds what the meters say beyond what was charged.
func (p *Prices) addOpen(load func(session string) *Reading) {
	for i := range p.Account.Sessions {
		s := &p.Account.Sessions[i]
		r := load(s.ID)
		if r == nil || !r.plausible() || len(s.Spans) == 0 {
			continue
		}
		for j, part := range s.uncharged(r) {
			span := s.Spans[j]
			if span.history || part.IsZero() && (s.Closed || span.Outside()) {
				continue
			}
			c := Cost{
				EntryID: span.EntryID, ID: span.ID, Start: span.Start, FirstSeq: span.FirstSeq, DeliveredSeq: span.DeliveredSeq,
				Attempt: span.Attempt, SessionID: s.ID, Models: r.models(span, part.endOr(math.MaxInt64), part.Amount),
				Price: price.Price{Amount: part.Amount, Model: r.Model},
			}
			p.add(c)
			p.open = append(p.open, c)
			if !s.Closed && !part.complete {
				p.goesOn[priceKey{span.EntryID, span.FirstSeq}] = true
			}
			p.extra = p.extra.Plus(part.Amount)
			if span.Outside() {
				p.outside = p.outside.Plus(part.Amount)
			}
		}
	}
}

// Of is what an entry has cost over all its deliveries; firstSeq is the number of the
// commit of the first of them, as its outcome has it. known is false if nothing is known of it.
func (p *Prices) Of(entryID string, firstSeq int64) (of price.Price, known bool) {
	if found := p.entries[priceKey{entryID, firstSeq}]; found != nil && (found.Dollars || !found.IsZero()) {
		return *found, true
	}
	return price.Price{}, false
}

// Pending reports whether more may be known of an entry in a moment: a session has not come to the end
// of what belongs to it.
func (p *Prices) Pending(entryID string, firstSeq int64) bool {
	return p.settling || p.goesOn[priceKey{entryID, firstSeq}]
}

// OfDelivery is what an entry has cost that is in flight or was given back.
func (p *Prices) OfDelivery(d *Delivery) (of price.Price, known bool) {
	if p.partial {
		of, known = p.Of(d.EntryID, d.first())
		of.Amount = of.Plus(d.Spent)
		return of, known || !d.Spent.IsZero()
	}
	return p.atLeast(d.EntryID, d.first(), price.Price{Amount: d.Spent})
}

// OfResult is what an answered entry has cost: what its result says, completed.
func (p *Prices) OfResult(r Result) (of price.Price, known bool) {
	return p.atLeast(r.EntryID, r.FirstSeq, r.Fields.Price())
}

// OfLetter is what an entry has cost that was set aside.
func (p *Prices) OfLetter(l DeadLetter) (of price.Price, known bool) {
	return p.atLeast(l.EntryID, l.FirstSeq, l.Fields.Price())
}

// atLeast completes what an outcome says. It may say more than the lines, where those
// are gone.
func (p *Prices) atLeast(entryID string, firstSeq int64, said price.Price) (of price.Price, known bool) {
	if firstSeq != 0 {
		of, known = p.Of(entryID, firstSeq)
	}
	if !known {
		return said, !said.IsZero() || said.Dollars
	}
	if of.Amount = most(of.Amount, said.Amount); of.Model == "" {
		of.Model = said.Model
	}
	return of, true
}

// Today is what was spent today, by the local date.
func (p *Prices) Today() price.Amount { return p.Account.On(p.day).Plus(p.extra) }

// Total is what was spent ever, and Outside what of that was for no entry.
func (p *Prices) Total() price.Amount { return p.Account.Total.Plus(p.extra) }

// Outside is what was spent for no entry.
func (p *Prices) Outside() price.Amount { return p.Account.Outside.Plus(p.outside) }

// Session is what a session has spent, as far as the lines are kept.
func (p *Prices) Session(id string) price.Amount { return p.sessions[id] }

// Open is what is not charged yet, as lines without a time.
func (p *Prices) Open() iter.Seq[Cost] {
	return func(yield func(Cost) bool) {
		for _, c := range p.open {
			if !yield(c) {
				return
			}
		}
	}
}

// Costs calls f for every line of .costs.jsonl, the oldest first, until f returns false.
// Lines that cannot be read give warnings. It takes no lock.
func (b *Inbox) Costs(f func(Cost) bool) (warnings []string, err error) {
	return b.costsUpTo(-1, nil, f)
}

// costsUpTo reads up to an offset, or all where that is negative or the file is shorter:
// it was rotated then.
func (b *Inbox) costsUpTo(end int64, wanted func(line []byte) bool, f func(Cost) bool) (warnings []string, err error) {
	file, err := openState(b.CostsPath())
	if file == nil || err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size := file.Info().Size
	if end >= 0 && end <= size {
		size = end
	}
	foreign, torn, n := 0, false, 0
	err = lines.Each(io.NewSectionReader(file, 0, size), 0, func(_, _ int64, l []byte, whole bool) bool {
		n++
		if blank(l) {
			return true
		}
		if !whole {
			torn = true
			return true
		}
		if wanted != nil && !wanted(l) {
			return true
		}
		c, bad := ParseCost(l)
		if bad != nil {
			foreign++
			return true
		}
		return f(c)
	})
	if foreign > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: %d of %d lines are not costs on one line, and are left out", file.Path(), foreign, n))
	}
	if torn {
		warnings = append(warnings, fmt.Sprintf("%s ends in the middle of a line, which is left out until it is whole", file.Path()))
	}
	if err != nil {
		return warnings, fmt.Errorf("read costs: %w", err)
	}
	return warnings, nil
}
