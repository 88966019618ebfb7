package inbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

// Account holds what was spent and which parts of transcripts are still uncharged. It is part of the state,
// so it commits together with the entries. Its sums do not depend on which lines of .costs.jsonl are kept.
type Account struct {
	// Day is the local date of Today, such as 2026-11-22.
	Day string
	// Today and Total are the charges of that day and of all time. Outside is the part of Total that belongs
	// to no entry, so the entries cost Total less Outside.
	Today, Total, Outside price.Amount
	// dayBegan and dayEnds limit Day in the time zone that began it, in seconds since 1970. Earlier releases noted the
	// end.
	dayBegan, dayEnds int64
	// DayLimit is the limit for one day that the hook reported last.
	DayLimit json.RawMessage
	// Raised holds the entry ids of the last entries that were requeued with other limits. Only these may
	// exceed the limits of the flags: limits in any other line may come from anybody who can append.
	Raised []string
	// Sessions are the sessions with recent spending, latest first.
	Sessions []SessionTurns
}

// Money is what a transaction, or a view, knows of spending: the account, and what is not charged yet.
type Money struct {
	tx        *Tx
	account   *Account // nil until needed
	changed   bool
	positions map[string]position // see Position
	open      []Uncharged         // see Count
}

// Money returns the spending as a transaction has changed it. The changes are committed with the transaction.
func (t *state) Money() *Money { return &t.tx.money }

// Account returns a copy of the account.
func (m *Money) Account() Account {
	a := *m.readAccount()
	a.Raised, a.Sessions = slices.Clone(a.Raised), slices.Clone(a.Sessions)
	for i := range a.Sessions {
		a.Sessions[i].Turns = slices.Clone(a.Sessions[i].Turns)
	}
	return a
}

// Account returns what was charged so far, zero if the state was not written in this directory.
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

// readAccount returns the account that the transaction changes. An unreadable account is replaced by an
// empty one, so that the queue is still served.
func (m *Money) readAccount() *Account {
	if m.account == nil {
		a, err := decodeAccount(m.tx.st.Account)
		if err != nil {
			m.tx.warn("what was spent so far cannot be read in the journal, and is counted anew: %v", err)
		}
		m.account = a
	}
	return m.account
}

// changeAccount returns the account and has the next commit write it.
func (m *Money) changeAccount() *Account {
	m.tx.dirty, m.changed = true, true
	return m.readAccount()
}

// Session returns the session with that id, nil if it is unknown.
func (a *Account) Session(id string) *SessionTurns {
	if i := slices.IndexFunc(a.Sessions, func(s SessionTurns) bool { return s.ID == id }); i >= 0 {
		return &a.Sessions[i]
	}
	return nil
}

// front moves a session to the front and returns it. Of too many sessions it drops the last, but never that of the
// entry in flight, whose limits hold only while the account has its turns.
func (m *Money) front(s SessionTurns) *SessionTurns {
	a := m.changeAccount()
	a.forget(s.ID)
	a.Sessions = slices.Insert(a.Sessions, 0, s)
	for last := len(a.Sessions) - 1; len(a.Sessions) > maxAccounts; last-- {
		if d := m.tx.inFlight; d == nil || d.SessionID != a.Sessions[last].ID {
			a.Sessions = slices.Delete(a.Sessions, last, last+1)
		}
	}
	return &a.Sessions[0]
}

func (a *Account) forget(id string) {
	a.Sessions = slices.DeleteFunc(a.Sessions, func(s SessionTurns) bool { return s.ID == id })
}

// Booking is the cost of a session's first turn, in whole or up to an offset of the transcript.
type Booking struct {
	Amount price.Amount
	// Before is the part of Amount that was spent before [Money.DayBegan].
	Before price.Amount
	// Line is the line for .costs.jsonl, nil for none.
	Line []byte
	// From and Since are the offset and the time at which the uncharged rest begins. Stated and Ledger are the new
	// values of [SessionTurns]. Rest means that the rest belongs to the same turn.
	From, Since, Stated int64
	Ledger              string
	Rest                bool
}

// Book charges the cost of a session's first turn, and forgets the session after its last turn. Call Book
// before settling, so that the outcome includes the cost.
func (m *Money) Book(session string, b Booking) {
	a := m.changeAccount()
	s := a.Session(session)
	of := s.Turns[0]
	s.Stated, s.Ledger = b.Stated, b.Ledger
	if !b.Rest {
		s.Turns = slices.Delete(s.Turns, 0, 1)
	}
	if len(s.Turns) > 0 {
		s.Turns[0].From, s.Turns[0].Since = b.From, b.Since
	} else {
		a.forget(session)
	}
	m.Charge(of.Charged, b.Amount, b.Before, b.Line)
}

// Charge charges the cost of a turn, which may already be booked. before is the part of the amount that was spent before
// [Money.DayBegan], and line the line for .costs.jsonl.
func (m *Money) Charge(of price.Charged, amount, before price.Amount, line []byte) {
	if amount.IsZero() {
		return
	}
	a := m.changeAccount()
	a.add(m.day(a), amount, of.Outside())
	a.Today = a.Today.Minus(before)
	m.tx.addJSON(journal.Costs, line)
	if d := m.tx.inFlight; d != nil && chargedTo(of, d) {
		m.tx.setInFlight(d.spending(amount))
	}
	if d := m.tx.redeliver; d != nil && chargedTo(of, d) {
		m.tx.setRedeliver(d.spending(amount))
	}
}

// ForgetTurns drops a session that will spend nothing more.
func (m *Money) ForgetTurns(session string) {
	m.changeAccount().forget(session)
	m.Count(session, nil)
}

// Now returns the time, in UTC.
func (m *Money) Now() time.Time { return m.tx.box.utcNow() }

// spending returns the delivery with amount added. The cost that the client itself states (Said) counts for
// sessions alone, because the client states it only after the entry has ended.
func (d *Delivery) spending(amount price.Amount) *Delivery {
	with := *d
	with.Spent = d.Spent.Plus(amount)
	with.Spent.ClientNanos = 0
	return &with
}

// Uncharged is the cost so far of a turn that is not charged yet. Its models are set even if there is only one.
type Uncharged struct {
	price.Line
	Before price.Amount // the part that was spent before [Money.DayBegan]
	GoesOn bool         // the turn has not ended
}

// Count adds the uncharged turns of a session to outcomes and to what is held against limits.
func (m *Money) Count(session string, open []Uncharged) {
	m.open = slices.DeleteFunc(m.open, func(o Uncharged) bool { return o.SessionID == session })
	m.open = append(m.open, open...)
}

// costOf returns the entry's price as an outcome states it.
func (m *Money) costOf(d *Delivery) price.Fields {
	p := price.Price{Amount: d.Spent}
	known := !d.Spent.IsZero()
	for _, o := range m.open {
		if chargedTo(o.Charged, d) {
			p.Amount, known = p.Plus(o.Amount), true
		}
		if o.SessionID == d.SessionID {
			p.Model = o.Model
		}
	}
	if p.ClientNanos = 0; !known {
		return price.Fields{}
	}
	return p.Fields()
}

// Spending is what is held against limits: the entry in flight in all its deliveries, and today.
type Spending struct {
	Entry price.Amount
	// Here is the cost of the entry in this delivery.
	Here  price.Amount
	Alone price.Amount // the part of Today that is Here
	Today price.Amount
}

// Spending adds the uncharged turns of this transaction to the account.
func (m *Money) Spending() (s Spending) {
	s.Today = m.Today()
	if d := m.tx.inFlight; d != nil {
		s.Entry = d.Spent
		for _, o := range m.open {
			if chargedTo(o.Charged, d) {
				s.Entry = s.Entry.Plus(o.Amount)
			}
			if chargedFor(o.Charged, d) {
				s.Here, s.Alone = s.Here.Plus(o.Amount), s.Alone.Plus(o.Minus(o.Before))
			}
		}
	}
	return s
}

// Today returns the spending of the local day, on entries and outside them, with the uncharged turns of this
// transaction.
func (m *Money) Today() price.Amount {
	return m.readAccount().On(m.tx.box.opts.Now(), m.open...)
}

// day returns the account's day while it lasts, else the local date. Only then does it load the local time zone.
func (m *Money) day(a *Account) string {
	now := m.tx.box.opts.Now()
	if a.lasts(now) {
		return a.Day
	}
	a.dayBegan, a.dayEnds = m.DayBegan().Unix(), m.Midnight().Unix()
	return now.Local().Format(time.DateOnly)
}

// add counts a charge on that day.
func (a *Account) add(day string, amount price.Amount, outside bool) {
	if !a.isOn(day) {
		a.Day, a.Today = day, price.Amount{}
	}
	a.Today, a.Total = a.Today.Plus(amount), a.Total.Plus(amount)
	if outside {
		a.Outside = a.Outside.Plus(amount)
	}
}

// On returns what was charged on the day of that time, plus the part of open that was spent on it. The account knows
// only the last day with a charge.
func (a *Account) On(now time.Time, open ...Uncharged) (sum price.Amount) {
	if a.lasts(now) || a.isOn(now.Local().Format(time.DateOnly)) {
		sum = a.Today
	}
	for _, o := range open {
		sum = sum.Plus(o.Minus(o.Before))
	}
	return sum
}

// lasts reports whether the account's day has not ended, in the time zone that began it.
func (a *Account) lasts(now time.Time) bool {
	return a.Day != "" && now.Unix() < a.dayEnds && now.Unix() >= a.dayEnds-26*60*60
}

// isOn reports whether the account's day is that local date, or a later date in a time zone further east. Otherwise
// processes in two time zones would take turns to begin a new day, and no daily limit would hold.
func (a *Account) isOn(day string) bool {
	if a.Day <= day {
		return a.Day == day
	}
	kept, err1 := time.Parse(time.DateOnly, a.Day)
	now, err2 := time.Parse(time.DateOnly, day)
	return err1 == nil && err2 == nil && kept.Sub(now) <= 2*24*time.Hour
}

// AcceptUnpriced counts today's use of models without a price as free, because a person resumed delivery. Otherwise a
// daily limit in dollars would hold delivery until midnight.
func (m *Money) AcceptUnpriced() {
	if m.readAccount().Today.Unpriced > 0 {
		m.changeAccount().Today.Unpriced = 0
	}
}

// NoteLimit stores the daily limit of the consumer's flags with the next commit, for read-only commands.
func (m *Money) NoteLimit(day json.RawMessage) {
	if a := m.readAccount(); !bytes.Equal(a.DayLimit, day) {
		a.DayLimit, m.changed = day, true
	}
}

// Midnight returns the end of the day that [Money.Today] counts: the local day, unless another time zone's still lasts.
func (m *Money) Midnight() time.Time {
	now := m.tx.box.opts.Now()
	if a := m.readAccount(); a.lasts(now) {
		return time.Unix(a.dayEnds, 0).UTC()
	}
	return midnight(now.Local(), 1).UTC()
}

// DayBegan returns the beginning of the day that [Money.Today] counts.
func (m *Money) DayBegan() time.Time {
	now := m.tx.box.opts.Now()
	if a := m.readAccount(); a.lasts(now) && a.dayBegan > 0 && a.dayBegan <= now.Unix() {
		return time.Unix(a.dayBegan, 0).UTC()
	}
	return midnight(now.Local(), 0).UTC()
}

// midnight returns when the day begins that is so many days after that of now, in the time zone of now.
func midnight(now time.Time, days int) time.Time {
	y, m, d := now.Date()
	return words.Showing(time.Date(y, m, d+days, 0, 0, 0, 0, time.UTC), now.Location())[0]
}

func (a *Account) encode() []byte {
	var o flat.Object
	o.Text("day", a.Day)
	o.Int("day_began", a.dayBegan)
	o.Int("day_ends", a.dayEnds)
	o.Text("today", a.Today.Short())
	o.Text("total", a.Total.Short())
	o.Text("outside", a.Outside.Short())
	o.Raw("day_limit", a.DayLimit)
	o.Text("raised", strings.Join(a.Raised, " "))
	o.Raw("sessions", flat.List(a.Sessions, func(b []byte, s *SessionTurns) []byte { return append(b, s.encode()...) }))
	return o.End()
}

// decodeAccount returns an empty account after an error, and never nil.
func decodeAccount(record []byte) (*Account, error) {
	if len(record) == 0 {
		return new(Account), nil
	}
	m, err := flat.Parse(record)
	if err != nil {
		return new(Account), err
	}
	a := &Account{Day: m.String("day"), dayBegan: m.Int("day_began"), dayEnds: m.Int("day_ends")}
	for name, into := range map[string]*price.Amount{"today": &a.Today, "total": &a.Total, "outside": &a.Outside} {
		if *into, err = price.Short(m.String(name)); err != nil {
			return new(Account), err
		}
	}
	a.DayLimit = m.Raw("day_limit")
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
