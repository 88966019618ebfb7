package inbox

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
	"heartbeat/internal/money/budget"
	"heartbeat/internal/money/price"
)

// Account is what was spent so far, and the parts of transcripts that are not charged yet. It is part of
// the state, so that it changes with the entries or not at all. Its sums do not depend
// on which lines of .costs.jsonl are kept.
type Account struct {
	// Day is the local date of Today, such as 2026-11-22.
	Day string
	// Today, Total and Outside are what was charged that day, ever, and for no entry:
	// Total less Outside is what the entries cost.
	Today, Total, Outside price.Amount
	// dayEnds is when Day is over where it was begun, in seconds since 1970.
	dayEnds int64
	// DayLimit is what a day may cost, as the hook said last.
	DayLimit budget.Limits
	// Raised are the entry ids of the last entries that were requeued with other limits:
	// in any other line of the inbox, whoever may append to it would lift the limits of
	// the flags.
	Raised []string
	// Sessions are those that spend, or did lately, the latest first.
	Sessions []SessionTurns
}

// Account is what was spent so far, as this transaction has it.
func (t *Tx) Account() Account { return t.readAccount().clone() }

// Account is what was charged so far.
func (v *View) Account() (Account, error) {
	if !v.tx.writtenHere() {
		return Account{}, nil // the next transaction forgets it
	}
	a, err := decodeAccount(v.tx.st.Account)
	if err != nil {
		return Account{}, fmt.Errorf("read journal: account: %w: %w", ErrCorrupt, err)
	}
	return *a, nil
}

// readAccount is the account that this transaction changes. One that cannot be read keeps
// nobody from being served.
func (t *Tx) readAccount() *Account {
	if t.account == nil {
		a, err := decodeAccount(t.st.Account)
		if err != nil {
			t.warn("what was spent so far cannot be read in the journal, and is counted anew: %v", err)
		}
		t.account = a
	}
	return t.account
}

// changeAccount is the account, which the next commit writes.
func (t *Tx) changeAccount() *Account {
	t.dirty, t.accountChanged = true, true
	return t.readAccount()
}

func (a *Account) clone() Account {
	b := *a
	b.Raised, b.Sessions = slices.Clone(b.Raised), slices.Clone(b.Sessions)
	for i := range b.Sessions {
		b.Sessions[i].Turns = slices.Clone(b.Sessions[i].Turns)
	}
	return b
}

// Session is what is known of a session, nil if that is nothing.
func (a *Account) Session(id string) *SessionTurns {
	for i := range a.Sessions {
		if a.Sessions[i].ID == id {
			return &a.Sessions[i]
		}
	}
	return nil
}

// front moves a session to the front and returns it. Of too many the one that was heard of first goes.
func (a *Account) front(s SessionTurns) *SessionTurns {
	a.forget(s.ID)
	a.Sessions = slices.Insert(a.Sessions, 0, s)
	a.Sessions = a.Sessions[:min(len(a.Sessions), maxAccounts)]
	return &a.Sessions[0]
}

func (a *Account) forget(id string) {
	a.Sessions = slices.DeleteFunc(a.Sessions, func(s SessionTurns) bool { return s.ID == id })
}

// Booking is what the first turn of a session has cost, in whole or up to a place.
type Booking struct {
	Amount price.Amount
	// Line is for .costs.jsonl, nil for nothing.
	Line []byte
	// From and Since are where, and when, what is not charged yet begins, and Stated is the client's own
	// total by then. Rest says that it is the same turn's.
	From, Since, Stated int64
	Rest                bool
}

// Book charges what the first turn of a session has cost. Book before settling, so that the outcome has it. A
// session whose last turn is booked is forgotten.
func (t *Tx) Book(session string, b Booking) {
	a := t.changeAccount()
	s := a.Session(session)
	of := s.Turns[0]
	s.Stated = b.Stated
	if !b.Rest {
		s.Turns = slices.Delete(s.Turns, 0, 1)
	}
	if len(s.Turns) > 0 {
		s.Turns[0].From, s.Turns[0].Since = b.From, b.Since
	} else {
		a.forget(session)
	}
	if b.Amount.IsZero() {
		return
	}
	a.add(t.day(a), b.Amount, of.Outside())
	t.addJSON(journal.Costs, b.Line)
	if d := t.inFlight; d != nil && of.of(d) {
		t.setInFlight(d.spending(b.Amount))
	}
	if d := t.redeliver; d != nil && of.of(d) {
		t.setRedeliver(d.spending(b.Amount))
	}
}

// ForgetTurns says that nothing more comes of a session.
func (t *Tx) ForgetTurns(session string) {
	t.changeAccount().forget(session)
	t.Count(session, nil)
}

// Now is the time, in UTC.
func (t *Tx) Now() time.Time { return t.box.utcNow() }

// spending is the delivery with more that was charged to its entry. What the client said is for sessions: it
// says that a moment after an entry's end.
func (d *Delivery) spending(amount price.Amount) *Delivery {
	with := *d
	with.Spent = d.Spent.Plus(amount)
	with.Spent.Said = 0
	return &with
}

// Uncharged is what a turn that is not charged yet has cost so far.
type Uncharged struct {
	Turn
	SessionID string
	price.Price
}

// Count has outcomes, and what is held against limits, take into account what the turns of a session
// have cost that are not charged yet.
func (t *Tx) Count(session string, open []Uncharged) {
	t.open = slices.DeleteFunc(t.open, func(o Uncharged) bool { return o.SessionID == session })
	t.open = append(t.open, open...)
}

// costOf is what an outcome says of the entry's price.
func (t *Tx) costOf(d *Delivery) price.Fields {
	p := price.Price{Amount: d.Spent}
	known := !d.Spent.IsZero()
	for _, o := range t.open {
		if o.of(d) {
			p.Amount, known = p.Plus(o.Amount), true
		}
		if o.SessionID == d.SessionID {
			p.Model = o.Model
		}
	}
	if p.Said = 0; !known {
		return price.Fields{}
	}
	return p.Fields()
}

// Spending is what is held against limits: what the entry in flight has cost in all its
// deliveries, and what was spent today.
type Spending struct {
	Entry price.Amount
	// Here is what the entry has cost in this delivery.
	Here  price.Amount
	Today price.Amount
}

// Spending is what the account and what this transaction has counted add up to.
func (t *Tx) Spending() (s Spending) {
	s.Today = t.Today()
	if d := t.inFlight; d != nil {
		s.Entry = d.Spent
		for _, o := range t.open {
			if o.of(d) {
				s.Entry = s.Entry.Plus(o.Amount)
			}
			if o.is(d) {
				s.Here = s.Here.Plus(o.Amount)
			}
		}
	}
	return s
}

// Today is what was spent on entries and outside of them on the day that it is, by the
// local clock, with what this transaction has counted.
func (t *Tx) Today() price.Amount {
	sum := t.readAccount().On(t.box.Today())
	for _, o := range t.open {
		sum = sum.Plus(o.Amount)
	}
	return sum
}

// Position is [Tx.Position] for what is looked at next.
func (v *View) Position(session, transcript string, length int64) (cut bool) {
	return v.tx.Position(session, transcript, length, false)
}

// Turns are those of a session, as [Tx.Turns] has them.
func (v *View) Turns(session string) *SessionTurns { return v.tx.Turns(session) }

// Spending is what the account and an open session add up to. It changes nothing.
func (v *View) Spending(session string, open []Uncharged) Spending {
	v.tx.Count(session, open)
	return v.tx.Spending()
}

// CostLines calls f for the lines of .costs.jsonl that the state has, the oldest first, until f returns false; whole
// is false for one that is being written.
func (v *View) CostLines(f func(line []byte, whole bool) bool) error {
	if !v.tx.writtenHere() {
		return nil
	}
	return v.tx.box.costLines(v.tx.st.Ends[journal.Costs].At, f)
}

// CostLines is [View.CostLines] for all that is in the file. It takes no lock.
func (b *Inbox) CostLines(f func(line []byte, whole bool) bool) error { return b.costLines(-1, f) }

// costLines reads up to an offset, or all where that is negative or the file is shorter: it was rotated then.
func (b *Inbox) costLines(end int64, f func(line []byte, whole bool) bool) (err error) {
	file, err := openState(b.CostsPath())
	if file == nil || err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size := file.Info().Size
	if end >= 0 && end <= size {
		size = end
	}
	return lines.Each(io.NewSectionReader(file, 0, size), 0, func(_, _ int64, l []byte, whole bool) bool {
		return blank(l) || f(l, whole)
	})
}

// SettledView is a view whose commit has reached the files, if that is so in a moment.
func (b *Inbox) SettledView() (*View, error) {
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

// Today is the local date.
func (b *Inbox) Today() string { return b.opts.Now().Local().Format(time.DateOnly) }

// day is the local date. As long as that of the account is not over, the local zone is
// not read for it.
func (t *Tx) day(a *Account) string {
	now := t.box.opts.Now().Unix()
	if a.Day != "" && now < a.dayEnds && now >= a.dayEnds-26*60*60 {
		return a.Day
	}
	a.dayEnds = t.Midnight().Unix()
	return t.box.Today()
}

// add counts what is charged on a day.
func (a *Account) add(day string, amount price.Amount, outside bool) {
	if !a.is(day) {
		a.Day, a.Today = day, price.Amount{}
	}
	a.Today, a.Total = a.Today.Plus(amount), a.Total.Plus(amount)
	if outside {
		a.Outside = a.Outside.Plus(amount)
	}
}

// On is what was charged on a day, a local date such as 2026-11-22, if that is the last
// one on which anything was.
func (a *Account) On(day string) price.Amount {
	if !a.is(day) {
		return price.Amount{}
	}
	return a.Today
}

// is reports whether the account's day is that local date, or that of a place further
// east: processes in two time zones would otherwise begin a new day in turn, and no limit
// of a day would hold.
func (a *Account) is(day string) bool {
	if a.Day <= day {
		return a.Day == day
	}
	kept, err1 := time.Parse(time.DateOnly, a.Day)
	now, err2 := time.Parse(time.DateOnly, day)
	return err1 == nil && err2 == nil && kept.Sub(now) <= 2*24*time.Hour
}

func (a *Account) encode() []byte {
	var o flat.Object
	o.Text("day", a.Day)
	o.Int("day_ends", a.dayEnds)
	for _, of := range []struct {
		name string
		price.Amount
	}{{"today", a.Today}, {"total", a.Total}, {"outside", a.Outside}} {
		o.Text(of.name, of.Short())
	}
	o.Raw("day_limit", a.DayLimit.JSON())
	o.Text("raised", strings.Join(a.Raised, " "))
	list := []byte{'['}
	for i := range a.Sessions {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, a.Sessions[i].encode()...)
	}
	o.Raw("sessions", append(list, ']'))
	return o.End()
}

// decodeAccount always returns an account: an empty one with an error.
func decodeAccount(record []byte) (*Account, error) {
	if len(record) == 0 {
		return new(Account), nil
	}
	m, err := flat.Parse(record)
	if err != nil {
		return new(Account), err
	}
	a := &Account{Day: m.String("day"), dayEnds: m.Int("day_ends")}
	for name, into := range map[string]*price.Amount{"today": &a.Today, "total": &a.Total, "outside": &a.Outside} {
		if *into, err = price.Short(m.String(name)); err != nil {
			return new(Account), err
		}
	}
	a.DayLimit, _ = budget.Parse(m.Raw("day_limit")) // that of a later release is none
	a.Raised = strings.Fields(m.String("raised"))
	for _, v := range m.Value("sessions").Items() {
		s, err := sessionTurnsFrom(v)
		if err != nil {
			return new(Account), err
		}
		if len(s.Turns) > 0 {
			a.Sessions = append(a.Sessions, s)
		}
	}
	return a, m.Err()
}
