package inbox

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/money/budget"
	"heartbeat/internal/money/price"
)

// Account is what was spent so far, and what the sessions spend on now. It is part of
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
	// EntryLimit and DayLimit are what an entry and a day may cost, as the hook said last.
	EntryLimit, DayLimit budget.Limits
	// Raised are the entry ids of the last entries that were requeued with other limits:
	// in any other line of the inbox, whoever may append to it would lift the limits of
	// the flags.
	Raised []string
	// Sessions are those that spend, or did lately, the latest first.
	Sessions []SessionAccount
}

// SessionAccount is what is known of one session's spending.
type SessionAccount struct {
	ID string
	// Charged is how much of what the meter counted was charged.
	Charged price.Amount
	// Closed says that nothing more is expected: the session has ended.
	Closed bool
	// Spans are what the spending belongs to, in their order in the transcript. What is
	// not charged yet belongs to the first of them, up to where the next one begins.
	Spans []Span
	// Late are the last spans that were charged and of which more may come; From is where each
	// ended.
	Late []Span
}

// Span is a part of a session's transcript: one delivery of an entry, or what lies
// between two.
type Span struct {
	// EntryID is empty outside of entries. The entry is the one whose first delivery had
	// the commit FirstSeq, and this delivery has DeliveredSeq.
	EntryID, ID            string
	Start                  int64
	FirstSeq, DeliveredSeq int64
	Attempt                int
	// From is a length that the transcript had: the span begins with the first line of a
	// user at or behind it. It is negative if nobody knew.
	From int64

	// since is when that was, in milliseconds since 1970, where every line of what was
	// before is older, and that line is not; 0 if that is not so.
	since int64
	// mark is where that line is, 0 until it is known.
	mark int64
	// turned says that such a line is known to be, wherever.
	turned bool
	// history is what a session had spent before this inbox knew of it: nobody's.
	history bool
}

// Outside reports whether the span belongs to no entry.
func (s Span) Outside() bool { return s.EntryID == "" }

const (
	// maxAccounts is how many sessions are accounted for at once. What is known of
	// another is found again in .costs.jsonl.
	maxAccounts = 8
	// maxSpans bounds a session whose meter cannot be read.
	maxSpans = 24
	// maxSessionName is how long the name of a session may be that is accounted for.
	maxSessionName = 128
)

// Account is what was spent so far, as this transaction has it.
func (t *Tx) Account() (Account, error) {
	a := t.readAccount()
	return a.clone(), nil
}

// Account is what was spent so far: what was charged. [Inbox.Prices] adds what is not
// charged yet.
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
		b.Sessions[i].Spans, b.Sessions[i].Late = slices.Clone(b.Sessions[i].Spans), slices.Clone(b.Sessions[i].Late)
	}
	return b
}

// Session is what is known of a session, nil if that is nothing.
func (a *Account) Session(id string) *SessionAccount {
	for i := range a.Sessions {
		if a.Sessions[i].ID == id {
			return &a.Sessions[i]
		}
	}
	return nil
}

// front moves a session to the front and returns it.
func (a *Account) front(s SessionAccount) *SessionAccount {
	a.Sessions = slices.DeleteFunc(a.Sessions, func(o SessionAccount) bool { return o.ID == s.ID })
	a.Sessions = slices.Insert(a.Sessions, 0, s)
	for len(a.Sessions) > maxAccounts {
		out := len(a.Sessions) - 1
		for i, o := range slices.Backward(a.Sessions) {
			if o.Closed {
				out = i
				break
			}
		}
		a.Sessions = slices.Delete(a.Sessions, out, out+1)
	}
	return &a.Sessions[0]
}

// close forgets a session. Its lines in .costs.jsonl have what was charged.
func (a *Account) close(id string) {
	a.Sessions = slices.DeleteFunc(a.Sessions, func(s SessionAccount) bool { return s.ID == id })
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
		o.Text(of.name, amountText(of.Amount))
	}
	o.Raw("entry_limit", a.EntryLimit.JSON())
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
		if *into, err = amountOf(m.String(name)); err != nil {
			return new(Account), err
		}
	}
	for name, into := range map[string]*budget.Limits{"entry_limit": &a.EntryLimit, "day_limit": &a.DayLimit} {
		*into, _ = budget.Parse(m.Raw(name)) // those of a later release are none
	}
	a.Raised = strings.Fields(m.String("raised"))
	for _, v := range m.Value("sessions").Items() {
		s, err := decodeSessionAccount(v)
		if err != nil {
			return new(Account), err
		}
		a.Sessions = append(a.Sessions, s)
	}
	return a, m.Err()
}

func (s *SessionAccount) members(c flat.Codec, charged *string) {
	c.String("session_id", &s.ID)
	c.Text("charged", charged)
	c.Flag("closed", &s.Closed)
}

func (s *SessionAccount) encode() []byte {
	var o flat.Object
	charged := amountText(s.Charged)
	s.members(flat.To(&o), &charged)
	o.Raw("spans", spansText(s.Spans))
	if len(s.Late) > 0 {
		o.Raw("late", spansText(s.Late))
	}
	return o.End()
}

func spansText(all []Span) []byte {
	text := []byte{'['}
	for i := range all {
		if i > 0 {
			text = append(text, ',')
		}
		text = flat.AppendText(text, all[i].text())
	}
	return append(text, ']')
}

func spansFrom(list flat.Value) (all []Span, err error) {
	for _, v := range list.Items() {
		span, err := spanFrom(v.Text())
		if err != nil {
			return nil, err
		}
		all = append(all, span)
	}
	return all, nil
}

func decodeSessionAccount(v flat.Value) (s SessionAccount, err error) {
	m, err := flat.Parse([]byte(v))
	if err != nil {
		return s, err
	}
	var charged string
	if s.members(flat.From(m), &charged); m.Err() != nil {
		return s, m.Err()
	}
	if s.Charged, err = amountOf(charged); err != nil {
		return s, err
	}
	if s.Spans, err = spansFrom(m.Value("spans")); err == nil {
		s.Late, err = spansFrom(m.Value("late"))
	}
	if err == nil && len(s.Spans) == 0 {
		err = errors.New("a session has no span")
	}
	return s, err
}

// text is a span in one short string, since every record has them: where it begins, since
// when, its mark, and what is known of it; of an entry its place, its commits, its attempt and its
// names.
func (s *Span) text() string {
	b := make([]byte, 0, 160)
	b = strconv.AppendInt(b, s.From, 10)
	b = strconv.AppendInt(append(b, ' '), s.since, 10)
	b = strconv.AppendInt(append(b, ' '), s.mark, 10)
	b = append(b, ' ', '-')
	if s.turned {
		b = append(b, 't')
	}
	if s.history {
		b = append(b, 'h')
	}
	if s.Outside() {
		return string(b)
	}
	for _, n := range [...]int64{s.Start, s.FirstSeq, s.DeliveredSeq, int64(s.Attempt)} {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	b = append(append(b, ' '), s.EntryID...)
	if s.ID != "" {
		b = append(append(b, ' '), s.ID...)
	}
	return string(b)
}

func spanFrom(text string) (s Span, err error) {
	parts := strings.SplitN(text, " ", 10)
	var attempt int64
	into := [...]*int64{&s.From, &s.since, &s.mark, nil, &s.Start, &s.FirstSeq, &s.DeliveredSeq, &attempt}
	if n := len(parts); n != 4 && n < 9 {
		return s, fmt.Errorf("%q is no span", brief(text))
	}
	for i, p := range parts[:min(len(parts), len(into))] {
		if into[i] == nil {
			s.turned, s.history = strings.Contains(p, "t"), strings.Contains(p, "h")
		} else if *into[i], err = strconv.ParseInt(p, 10, 64); err != nil {
			return s, fmt.Errorf("%q is no span", brief(text))
		}
	}
	s.Attempt = int(attempt)
	if len(parts) > 8 {
		s.EntryID = parts[8]
	}
	if len(parts) > 9 {
		s.ID = parts[9]
	}
	return s, nil
}

// amountText is an amount in one short string, empty for nothing: billionths of a dollar
// ("-" if no dollars are known), tokens (input, output, cache read, cache write), and
// requests; behind them, unless both are 0, the requests without a price and the client's total.
// It is part of every record.
func amountText(a price.Amount) string {
	if a == (price.Amount{}) {
		return ""
	}
	b := make([]byte, 0, 64)
	if a.Dollars {
		b = strconv.AppendInt(b, a.Nanos, 10)
	} else {
		b = append(b, '-')
	}
	counts := [...]int64{a.Tokens.Input, a.Tokens.Output, a.Tokens.CacheRead, a.Tokens.CacheWrite, a.Requests, a.Unpriced, a.Said}
	n := len(counts)
	if a.Unpriced == 0 && a.Said == 0 {
		n -= 2
	}
	for _, n := range counts[:n] {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	return string(b)
}

func amountOf(text string) (a price.Amount, err error) {
	if text == "" {
		return a, nil
	}
	parts := strings.Fields(text)
	into := [...]*int64{
		&a.Nanos, &a.Tokens.Input, &a.Tokens.Output, &a.Tokens.CacheRead, &a.Tokens.CacheWrite, &a.Requests, &a.Unpriced, &a.Said,
	}
	if n := len(parts); n != len(into) && n != len(into)-2 {
		return a, fmt.Errorf("%q is no amount", brief(text))
	}
	a.Dollars = parts[0] != "-"
	for i, p := range parts {
		if i == 0 && !a.Dollars {
			continue
		}
		if *into[i], err = strconv.ParseInt(p, 10, 64); err != nil || *into[i] < 0 {
			return price.Amount{}, fmt.Errorf("%q is no amount", brief(text))
		}
	}
	return a, nil
}

func brief(text string) string { return text[:min(len(text), 40)] }
