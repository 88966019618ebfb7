// Package account keeps account of what sessions spend, on entries and outside them, in the records of an inbox.
package account

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/flat"
	"heartbeat/internal/money/price"
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

// Money is what a transaction, or a view, knows of spending: the account, and what is not charged yet. It is the
// [inbox.Accountant] of every program that links this package.
type Money struct {
	books     inbox.Books
	account   *Account // nil until needed
	changed   bool
	positions map[string]position // see Position
	open      []Uncharged         // see Count
}

func init() {
	inbox.SetAccountant(func(b inbox.Books) inbox.Accountant { return &Money{books: b} })
}

// Of returns the spending as a transaction has changed it, or as a view sees it. The changes are committed with the
// transaction.
func Of(in interface{ Accountant() inbox.Accountant }) *Money { return in.Accountant().(*Money) }

// Account returns the account as the transaction has changed it, to be read only. An unreadable account is replaced by an
// empty one, so that the queue is still served.
func (m *Money) Account() *Account {
	if m.account == nil {
		a, err := decodeAccount(m.books.Account())
		if err != nil {
			m.books.Warn("what was spent so far cannot be read in the journal, and is counted anew: %v", err)
		}
		m.account = a
	}
	return m.account
}

// Charged returns what was charged as of the last commit, zero if the state was not written in this directory.
func (m *Money) Charged() (Account, error) {
	a, err := decodeAccount(m.books.Account())
	if err != nil {
		return Account{}, fmt.Errorf("read journal: account: %w: %w", inbox.ErrCorrupt, err)
	}
	return *a, nil
}

// changeAccount returns the account and has the next commit write it.
func (m *Money) changeAccount() *Account {
	m.changed = true
	m.books.Change()
	return m.Account()
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
		if d := m.books.InFlight(); d == nil || d.SessionID != a.Sessions[last].ID {
			a.Sessions = slices.Delete(a.Sessions, last, last+1)
		}
	}
	return &a.Sessions[0]
}

func (a *Account) forget(id string) {
	a.Sessions = slices.DeleteFunc(a.Sessions, func(s SessionTurns) bool { return s.ID == id })
}

// Booking charges a session's first turn, in whole or up to an offset of the transcript: the End of its line.
type Booking struct {
	Uncharged
	// Since is the time at which the uncharged rest begins. Stated and Ledger are the new values of [SessionTurns]. Rest
	// means that the rest belongs to the same turn.
	Since, Stated int64
	Ledger        string
	Rest          bool
}

// Book charges the cost of a session's first turn, and forgets the session after its last turn. Call Book
// before settling, so that the outcome includes the cost.
func (m *Money) Book(b Booking) {
	a := m.changeAccount()
	s := a.Session(b.SessionID)
	s.Stated, s.Ledger = b.Stated, b.Ledger
	if !b.Rest {
		s.Turns = slices.Delete(s.Turns, 0, 1)
	}
	if len(s.Turns) > 0 {
		s.Turns[0].From, s.Turns[0].Since = b.End, b.Since
	} else {
		a.forget(s.ID)
	}
	m.Charge(b.Uncharged)
}

// Charge charges the cost of a turn, which may already be booked, and adds its line to .costs.jsonl.
func (m *Money) Charge(of Uncharged) {
	if of.IsZero() {
		return
	}
	a := m.changeAccount()
	a.add(m.day(a), of.Amount, of.Outside())
	a.Today = a.Today.Minus(of.Before)
	of.At = m.books.Now().UTC()
	m.books.Add(of.JSON())
	for _, d := range []*inbox.Delivery{m.books.InFlight(), m.books.Redeliver()} {
		if d != nil && chargedTo(of.Charged, d) {
			spent := Amount(d.Spent).Plus(of.Amount)
			spent.ClientNanos = 0 // the client states it only after the entry has ended, so it counts for sessions alone
			m.books.SetSpent(d, spent.Short())
		}
	}
}

// ForgetTurns drops a session that will spend nothing more.
func (m *Money) ForgetTurns(session string) {
	m.changeAccount().forget(session)
	m.Count(session, nil)
}

// Amount reads an [inbox.Delivery.Spent]. It is zero if somebody broke that.
func Amount(spent string) price.Amount {
	a, _ := price.Short(spent)
	return a
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

// CostOf is what an outcome states: the entry's price as far as it is known.
func (m *Money) CostOf(d *inbox.Delivery) inbox.Cost {
	p := price.Price{Amount: Amount(d.Spent)}
	known := !p.IsZero()
	for _, o := range m.open {
		if chargedTo(o.Charged, d) {
			p.Amount, known = p.Plus(o.Amount), true
		}
		if o.SessionID == d.SessionID {
			p.Model = o.Model
		}
	}
	if p.ClientNanos = 0; !known {
		return inbox.Cost{}
	}
	return p.Cost()
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
	if d := m.books.InFlight(); d != nil {
		s.Entry = Amount(d.Spent)
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
	return m.Account().On(m.books.Now(), m.open...)
}

// AcceptUnpriced counts today's use of models without a price as free, because a person resumed delivery. Otherwise a
// daily limit in dollars would hold delivery until midnight.
func (m *Money) AcceptUnpriced() {
	if m.Account().Today.Unpriced > 0 {
		m.changeAccount().Today.Unpriced = 0
	}
}

// NoteLimit stores the daily limit of the consumer's flags with the next commit, for read-only commands.
func (m *Money) NoteLimit(day json.RawMessage) {
	if a := m.Account(); !bytes.Equal(a.DayLimit, day) {
		a.DayLimit, m.changed = day, true
	}
}

// MaxRaised is how many undelivered entries may have limits that a person set. Beyond it the oldest lose
// their exception: they are set aside, and can be given limits again.
const MaxRaised = 64

// Raise notes that a person set the limits of this entry.
func (m *Money) Raise(entryID string) {
	a := m.changeAccount()
	a.Raised = append(slices.DeleteFunc(a.Raised, func(id string) bool { return id == entryID }), entryID)
	a.Raised = a.Raised[max(0, len(a.Raised)-MaxRaised):]
}

// Raised forgets the entries in gone, and returns how many others may have limits that a person set.
func (m *Money) Raised(gone map[string]bool) int {
	a, isGone := m.Account(), func(id string) bool { return gone[id] }
	if slices.ContainsFunc(a.Raised, isGone) {
		a = m.changeAccount()
		a.Raised = slices.DeleteFunc(a.Raised, isGone)
	}
	return len(a.Raised)
}

// IsRaised reports whether a person set the limits of this entry, which was not delivered since.
func (m *Money) IsRaised(entryID string) bool {
	return slices.Contains(m.Account().Raised, entryID)
}

// Record implements [inbox.Accountant].
func (m *Money) Record() []byte {
	if !m.changed {
		return nil
	}
	return m.account.encode()
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
