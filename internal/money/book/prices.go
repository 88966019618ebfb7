package book

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
	"unique"

	"heartbeat/inbox"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
)

// Prices are what entries have cost as far as it is known now: the charges, and what transcripts show beyond them.
type Prices struct {
	Account  account.Account // what was charged
	Warnings []string        // sentences about unreadable lines, which were left out

	entries  map[priceKey]entry // by the lines
	open     []account.Uncharged
	now      time.Time
	settling bool // the last charges may not be in the file yet
}

type entry struct {
	price.Price
	models []price.ByModel
}

// priceKey names an entry: see [price.Line].
type priceKey struct {
	entryID  string
	firstSeq int64
}

// Read reads .costs.jsonl, and counts what is not charged yet. It takes no lock and writes nothing.
func Read(box *inbox.Inbox) (*Prices, error) { return readOf(box, nil) }

// readOf is [Read] that decodes only the lines of the wanted entries; nil wants all.
func readOf(box *inbox.Inbox, wanted map[string]bool) (*Prices, error) {
	p := &Prices{entries: map[priceKey]entry{}}
	return p, p.read(box, wanted, p.add)
}

// Spending is [Read] without what was charged to settled entries. If each is not nil, it calls each for the lines
// of .costs.jsonl. Its other figures do not count those lines again.
func Spending(box *inbox.Inbox, each func(price.Line)) (*Prices, error) {
	p := new(Prices)
	return p, p.read(box, nil, each)
}

// read reads everything from one view of the inbox.
func (p *Prices) read(box *inbox.Inbox, wanted map[string]bool, each func(price.Line)) (err error) {
	v, err := box.SettledView()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	p.settling, p.now = v.Settling(), box.Options().Now()
	if p.Account, err = account.Of(v).Charged(); err != nil {
		return err
	}
	if each != nil {
		if p.Warnings, err = lines(box.CostsPath(), v.CostLines, wanted, each); err != nil {
			return fmt.Errorf("read costs: %w", err)
		}
	}
	for _, s := range p.Account.Sessions {
		known := v.In(s.ID).Known() // without it, the account knows the transcript
		if s.Transcript = cmp.Or(s.Transcript, meter.TranscriptOf(&known)); s.Transcript == "" {
			continue
		}
		c, _ := meter.CountTurns(&s, account.Of(v).DayBegan(), "", "") // the hook reports what cannot be counted
		p.open = append(p.open, c.Open(s.ID)...)
	}
	return nil
}

// Lines calls each for the lines of .costs.jsonl.
func Lines(box *inbox.Inbox, each func(price.Line)) (warnings []string, err error) {
	return lines(box.CostsPath(), box.CostLines, nil, each)
}

func lines(path string, all func(func(line []byte, whole bool) bool) error, wanted map[string]bool, each func(price.Line)) (warnings []string, err error) {
	foreign, torn, n := 0, false, 0
	err = all(func(line []byte, whole bool) bool {
		if n++; !whole {
			torn = true
		} else if wanted == nil || ofEntry(line, wanted) {
			if l, bad := price.ParseLine(line); bad == nil {
				each(l)
			} else {
				foreign++
			}
		}
		return true
	})
	if foreign > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: %d of %d lines are not costs on one line, and are left out", path, foreign, n))
	}
	if torn {
		warnings = append(warnings, path+" ends in the middle of a line, which is left out until it is whole")
	}
	return warnings, err
}

// ofEntry reports whether a line of .costs.jsonl, as heartbeat writes it, belongs to one of the entries.
func ofEntry(line []byte, entryIDs map[string]bool) bool {
	_, rest, found := bytes.Cut(line, []byte(`"entry_id":"`))
	end := bytes.IndexByte(rest, '"')
	return found && end >= 0 && entryIDs[string(rest[:end])]
}

func (p *Prices) add(l price.Line) {
	if l.Outside() {
		return
	}
	key := priceKey{unique.Make(l.EntryID).Value(), l.FirstSeq} // a substring would keep its whole line in memory
	of := p.entries[key]
	of.Amount = of.Plus(l.Amount)
	if l.Models == nil && l.Model != "" {
		l.Models = []price.ByModel{{Model: l.Model, Amount: l.Amount}}
	}
	for _, m := range slices.Backward(l.Models) {
		m.Model = unique.Make(m.Model).Value()
		of.Model, of.models = m.Model, m.In(of.models)
	}
	p.entries[key] = of
}

// with adds what is not charged yet of an entry, and drops the client's total, which is about sessions.
func (p *Prices) with(of price.Price, entryID string, firstSeq int64) price.Price {
	for _, o := range p.open {
		if o.EntryID == entryID && o.FirstSeq == firstSeq && entryID != "" {
			of.Amount, of.Model = of.Plus(o.Amount), cmp.Or(o.Model, of.Model)
		}
	}
	of.ClientNanos = 0
	return of
}

// Of returns what an entry has cost. outcome is the price in its outcome, which counts where it is more: lines may
// be gone. firstSeq is the commit of the entry's first delivery, 0 if unknown.
func (p *Prices) Of(entryID string, firstSeq int64, outcome inbox.Cost) price.Price {
	was := price.Of(outcome)
	of := p.with(p.entries[priceKey{entryID, firstSeq}].Price, entryID, firstSeq)
	if firstSeq == 0 || of.IsZero() && !of.Dollars {
		return was
	}
	of.Amount, of.Model = of.Most(was.Amount), cmp.Or(of.Model, was.Model)
	return of
}

// OfDelivery returns what an entry in flight, or one that was given back, has cost.
func (p *Prices) OfDelivery(d *inbox.Delivery) (of price.Price, known bool) {
	first := d.First()
	model := p.entries[priceKey{d.EntryID, first}].Model
	of = p.with(price.Price{Amount: account.Amount(d.Spent), Model: model}, d.EntryID, first)
	return of, !of.IsZero() || of.Dollars
}

// Models returns what an entry has cost on each model, or nil if there was only one.
func (p *Prices) Models(entryID string, firstSeq int64) (all []price.ByModel) {
	all = slices.Clone(p.entries[priceKey{entryID, firstSeq}].models)
	for _, o := range p.open {
		if o.EntryID == entryID && o.FirstSeq == firstSeq {
			for _, m := range slices.Backward(o.Models) {
				all = m.In(all)
			}
		}
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

// plusOpen returns sum with what is not charged yet: all of it, or only what is outside of entries.
func (p *Prices) plusOpen(sum price.Amount, outside bool) price.Amount {
	for _, o := range p.open {
		if o.Outside() || !outside {
			sum = sum.Plus(o.Amount)
		}
	}
	return sum
}

// Today returns what was spent today, by the local date.
func (p *Prices) Today() price.Amount { return p.Account.On(p.now, p.open...) }

// Total returns what was ever spent.
func (p *Prices) Total() price.Amount { return p.plusOpen(p.Account.Total, false) }

// Outside returns what was spent on no entry.
func (p *Prices) Outside() price.Amount { return p.plusOpen(p.Account.Outside, true) }

// Open returns what is not charged yet, as lines of this moment.
func (p *Prices) Open() iter.Seq[price.Line] {
	return func(yield func(price.Line) bool) {
		for _, o := range p.open {
			l := o.Line
			l.At = time.Now()
			if (!l.IsZero() || !l.Outside()) && !yield(l) {
				return
			}
		}
	}
}
