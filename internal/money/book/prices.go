package book

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/money/charging"
	"heartbeat/internal/money/price"
)

// Prices are what entries have cost as far as it is known now: the charges, and what transcripts say beyond them.
type Prices struct {
	// Account is what was charged.
	Account inbox.Account
	// Warnings are sentences about unreadable lines, which were left out.
	Warnings []string

	entries  map[priceKey]*entry // by the lines
	open     []open
	goesOn   map[priceKey]bool // entries whose spending may not have ended
	models   map[string]string // each name once: a substring would keep its whole line in memory
	day      string
	settling bool // the last charges may not be in the file yet
}

// entry is what one entry has cost, in all and on each model.
type entry struct {
	price.Amount
	models []price.ByModel
}

// last returns the price with the model of the last request.
func (e *entry) last() (p price.Price) {
	if e != nil && len(e.models) > 0 {
		p.Model = e.models[0].Model
	}
	if e != nil {
		p.Amount = e.Amount
	}
	return p
}

// open is the uncharged cost of a turn.
type open struct {
	inbox.Uncharged
	models []price.ByModel
}

// priceKey names an entry: see [price.Line].
type priceKey struct {
	entryID  string
	firstSeq int64
}

// Read reads .costs.jsonl, and counts what is not charged yet. It takes no lock and writes nothing. If entry ids
// are given, it decodes only their lines.
func Read(box *inbox.Inbox, entryIDs ...string) (*Prices, error) {
	p := &Prices{entries: map[priceKey]*entry{}, models: map[string]string{}}
	var wanted map[string]bool
	if entryIDs != nil {
		wanted = map[string]bool{}
	}
	for _, id := range entryIDs {
		wanted[id] = true
	}
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
	p.settling, p.day = v.Settling(), box.Today()
	if p.Account, err = v.Account(); err != nil {
		return err
	}
	if each != nil {
		if p.Warnings, err = lines(box.CostsPath(), v.CostLines, wanted, each); err != nil {
			return fmt.Errorf("read costs: %w", err)
		}
	}
	known, _ := v.Sessions() // without it, the account knows the transcripts
	p.goesOn = map[priceKey]bool{}
	for _, s := range p.Account.Sessions {
		if s.Transcript = cmp.Or(s.Transcript, charging.TranscriptOf(known, s.ID)); s.Transcript == "" {
			continue
		}
		c, _ := charging.Look(&s, "", "") // the hook reports what cannot be counted
		for i, o := range c.Open(s.ID) {
			models, goesOn, is := c.Models(i)
			if !is { // cost of a summary
				models = []price.ByModel{{Model: o.Model, Amount: o.Amount}}
			}
			key := priceKey{o.EntryID, o.FirstSeq}
			p.goesOn[key] = goesOn || p.goesOn[key]
			p.open = append(p.open, open{o, models})
		}
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
			return true
		}
		if wanted != nil && !ofEntry(line, wanted) {
			return true
		}
		l, bad := price.ParseLine(line)
		if bad != nil {
			foreign++
			return true
		}
		each(l)
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
	key := priceKey{l.EntryID, l.FirstSeq}
	of := p.entries[key]
	if of == nil {
		of = new(entry)
		key.entryID = strings.Clone(l.EntryID) // not the whole line
		p.entries[key] = of
	}
	of.Amount = of.Plus(l.Amount)
	if l.Models == nil && l.Model != "" {
		l.Models = []price.ByModel{{Model: l.Model, Amount: l.Amount}}
	}
	for _, m := range slices.Backward(l.Models) {
		if p.models[m.Model] == "" {
			m.Model = strings.Clone(m.Model)
			p.models[m.Model] = m.Model
		}
		m.Model = p.models[m.Model]
		of.models = m.In(of.models)
	}
}

// with adds what is not charged yet of an entry. It drops the client's total, which is about sessions.
func (p *Prices) with(of price.Price, entryID string, firstSeq int64) price.Price {
	for _, o := range p.open {
		if o.EntryID == entryID && o.FirstSeq == firstSeq && entryID != "" {
			of.Amount, of.Model = of.Plus(o.Amount), cmp.Or(o.Model, of.Model)
		}
	}
	of.Said = 0
	return of
}

// Of returns what an entry has cost. said is the price in its outcome, which may say more than the lines if those
// are gone. firstSeq is the commit of the entry's first delivery, 0 if unknown.
func (p *Prices) Of(entryID string, firstSeq int64, said price.Fields) (of price.Price, known bool) {
	was := said.Price()
	of = p.entries[priceKey{entryID, firstSeq}].last()
	if of = p.with(of, entryID, firstSeq); firstSeq == 0 || of.IsZero() && !of.Dollars {
		return was, !was.IsZero() || was.Dollars
	}
	of.Amount, of.Model = of.Most(was.Amount), cmp.Or(of.Model, was.Model)
	return of, true
}

// OfDelivery returns what an entry has cost that is in flight or was given back.
func (p *Prices) OfDelivery(d *inbox.Delivery) (of price.Price, known bool) {
	first := cmp.Or(d.FirstSeq, d.DeliveredSeq)
	of = p.entries[priceKey{d.EntryID, first}].last()
	of.Amount = d.Spent
	of = p.with(of, d.EntryID, first)
	return of, !of.IsZero() || of.Dollars
}

// Models returns what an entry has cost on each model, or nil if there was only one.
func (p *Prices) Models(entryID string, firstSeq int64) (all []price.ByModel) {
	if e := p.entries[priceKey{entryID, firstSeq}]; e != nil {
		all = slices.Clone(e.models)
	}
	for _, o := range p.open {
		if o.EntryID == entryID && o.FirstSeq == firstSeq {
			for _, m := range slices.Backward(o.models) {
				all = m.In(all)
			}
		}
	}
	if len(all) < 2 {
		return nil
	}
	return all
}

// Pending reports whether more may soon be known: a session has not reached the end of what belongs to the entry.
func (p *Prices) Pending(entryID string, firstSeq int64) bool {
	return p.settling || p.goesOn[priceKey{entryID, firstSeq}]
}

// more adds what is not charged yet to sum: all of it, or only what is outside of entries.
func (p *Prices) more(sum price.Amount, outside bool) price.Amount {
	for _, o := range p.open {
		if o.Outside() || !outside {
			sum = sum.Plus(o.Amount)
		}
	}
	return sum
}

// Today returns what was spent today, by the local date.
func (p *Prices) Today() price.Amount {
	return p.more(p.Account.On(p.day), false)
}

// Total returns what was ever spent.
func (p *Prices) Total() price.Amount { return p.more(p.Account.Total, false) }

// Outside returns what was spent on no entry.
func (p *Prices) Outside() price.Amount { return p.more(p.Account.Outside, true) }

// Open returns what is not charged yet, as lines of this moment.
func (p *Prices) Open() iter.Seq[price.Line] {
	return func(yield func(price.Line) bool) {
		for _, o := range p.open {
			l := charging.LineOf(o.Turn, o.Price)
			l.At, l.SessionID = time.Now(), o.SessionID
			if (!o.IsZero() || !o.Outside()) && !yield(l) {
				return
			}
		}
	}
}
