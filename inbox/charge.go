package inbox

import (
	"math"
	"slices"
	"strings"

	"heartbeat/internal/journal"
	"heartbeat/internal/money/price"
)

// Reading is what a session's meter says at a moment.
type Reading struct {
	Session string
	// Spent is all that it counted, and only grows.
	Spent price.Amount
	// Boundary is the first line of a user in the transcript at or behind a position; ok
	// is false if no such line was read yet. nil knows of none.
	Boundary func(position int64) (b Boundary, ok bool)
	// Models are what was spent on each model between two positions; nil tells nothing.
	Models func(from, to int64) []price.ByModel
	// Late is what was counted between two positions after what lay behind had its Boundary, in
	// billionths of a dollar; open says that more may come. nil is for nothing.
	Late func(from, to int64) (nanos int64, open bool)
	// Read is how much of the transcript was counted, in bytes.
	Read int64
	// Model is that of the last request.
	Model string
	// Over says that the session ends: what is open is charged as it is known.
	Over bool
	// Gone says that it has ended and that all was counted: its account is closed, and
	// opened again if it goes on one day.
	Gone bool
}

// Boundary is a line of a user in a transcript.
type Boundary struct {
	Offset int64
	// At is when the client says that the line came to be, in milliseconds since 1970; 0
	// if it does not say.
	At int64
	// Before is what was spent before that line.
	Before price.Amount
}

// largestCount is the most that is believed of any count: sums of it do not overflow.
const largestCount = math.MaxInt64 / 8

func (r *Reading) plausible() bool {
	for _, n := range [...]int64{r.Spent.Nanos, r.Spent.Tokens.Input, r.Spent.Tokens.Output, r.Spent.Tokens.CacheRead, r.Spent.Tokens.CacheWrite, r.Spent.Requests, r.Spent.Unpriced, r.Spent.Said} {
		if n < 0 || n > largestCount {
			return false
		}
	}
	return r.Session != "" && len(r.Session) <= maxSessionName
}

// Turn is what is known of a session's turns at a [Tx.Position]. The client writes the
// lines of one late.
type Turn int

const (
	// TurnUnknown says that a turn may have begun.
	TurnUnknown Turn = iota
	// TurnOver says that none goes on: every line so far is older than this transaction,
	// whenever it is written, and what follows is younger.
	TurnOver
	// TurnEnded says the same, and that no transaction was told of that turn yet: it has
	// a line of its own before what follows.
	TurnEnded
)

// Position says how long a session's transcript is as this transaction settles,
// delivers or binds: what is spent from the next line of a user on belongs to what
// follows. Call it before.
func (t *Tx) Position(session string, length int64, turn Turn) {
	if session == "" || len(session) > maxSessionName {
		return
	}
	if t.positions == nil {
		t.positions = map[string]position{}
	}
	p := position{length: max(0, length), turned: turn == TurnEnded}
	if turn != TurnUnknown {
		p.since = t.box.opts.Now().UnixMilli()
	}
	t.positions[session] = p
}

type position struct {
	length int64
	turned bool
	since  int64
}

// Charge books what a session has spent since it was charged last: to each entry, once
// it is certain where the entry's spending ends, and to no entry what lies between.
// The last of them stays open until the session is over. Charge before settling, so that
// the outcome has what is known of its price.
func (t *Tx) Charge(r Reading) error {
	if !r.plausible() {
		t.warn("what the meter of session %s says is impossible, and not counted", shortName(r.Session))
		return nil
	}
	if t.readings == nil {
		t.readings = map[string]*Reading{}
	}
	t.readings[r.Session] = &r
	s := t.readAccount().Session(r.Session)
	if s == nil {
		if r.Spent.IsZero() || t.isCharged(&r) {
			return nil
		}
		s = t.openSession(r.Session, 0, false)
	}
	t.cutOff(s)
	t.charge(s, &r)
	return nil
}

func shortName(session string) string { return session[:min(len(session), 12)] }

// SpentOn is what the entry in flight cost so far, with what was charged and what the
// readings of this transaction add; known is false if no meter has told of it.
func (t *Tx) SpentOn(d *Delivery) (p price.Price, known bool) {
	p = price.Price{Amount: d.Spent}
	known = !d.Spent.IsZero()
	for i := range t.readAccount().Sessions {
		s := &t.readAccount().Sessions[i]
		r := t.readings[s.ID]
		for j, amount := range s.uncharged(r) {
			if s.Spans[j].of(d) {
				p.Amount = plusOfEntry(p.Amount, amount.Amount)
				known = known || r != nil
			}
		}
		if r != nil && s.ID == d.SessionID {
			p.Model = r.Model
		}
	}
	return p, known
}

// costOf is what an outcome says of the entry's price.
func (t *Tx) costOf(d *Delivery) price.Fields {
	p, known := t.SpentOn(d)
	if !known {
		return price.Fields{}
	}
	return p.Fields()
}

// first is the commit of the entry's first delivery.
func (d *Delivery) first() int64 {
	if d.FirstSeq != 0 {
		return d.FirstSeq
	}
	return d.DeliveredSeq
}

// of reports whether the span is a delivery of that entry, this or an earlier one, and is
// whether it is that very delivery.
func (s Span) of(d *Delivery) bool { return s.EntryID == d.EntryID && s.FirstSeq == d.first() }
func (s Span) is(d *Delivery) bool { return s.of(d) && s.DeliveredSeq == d.DeliveredSeq }

func spanOf(d *Delivery) Span {
	return Span{
		EntryID: d.EntryID, ID: clipped(d.ID()), Start: d.StartOffset,
		FirstSeq: d.first(), DeliveredSeq: d.DeliveredSeq, Attempt: d.Attempt,
	}
}

// day is the local date. As long as that of the account is not over, the local zone is
// not read for it.
func (t *Tx) day(a *Account) string {
	now := t.box.opts.Now().Unix()
	if a.Day != "" && now < a.dayEnds && now >= a.dayEnds-26*60*60 {
		return a.Day
	}
	a.dayEnds = t.Midnight().Unix()
	return t.box.today()
}

// maxName bounds an entry's own id in the account, of which every record has several.
const maxName = 200

func clipped(id string) string {
	if len(id) <= maxName {
		return id
	}
	return strings.ToValidUTF8(id[:maxName], "")
}

// models are those of a span up to a position that cost an amount, unless there is but one, which
// is the price's own. A span of which a part was charged before has none, either.
func (r *Reading) models(of Span, end int64, cost price.Amount) []price.ByModel {
	if r.Models == nil {
		return nil
	}
	all := r.Models(r.start(of), end)
	for _, of := range all {
		cost.Requests -= of.Requests
	}
	if len(all) < 2 || cost.Requests != 0 {
		return nil
	}
	return all
}

// start is where a span begins, -1 for the transcript's beginning.
func (r *Reading) start(of Span) int64 {
	if of.mark != 0 {
		return of.mark
	}
	if m, ok := r.beginning(of, of.From); of.From > 0 && ok {
		return m.Offset
	}
	return -1
}

// maxLate is how many spans are kept of which more may come.
const maxLate = 8

// keepLate keeps a span that is charged up to a position, where more of it may come.
func (s *SessionAccount) keepLate(of Span, end int64, r *Reading) {
	if r.Late == nil {
		return
	}
	from := r.start(of)
	if _, open := r.Late(from, end); open {
		of.mark, of.From = from, end
		s.Late = append(s.Late, of)
		s.Late = s.Late[max(0, len(s.Late)-maxLate):]
	}
}

// chargeLate books what has come of the spans that were kept.
func (t *Tx) chargeLate(s *SessionAccount, r *Reading) {
	for i := 0; i < len(s.Late) && r.Late != nil; {
		of := s.Late[i]
		nanos, open := r.Late(of.mark, of.From)
		if open {
			i++
			continue
		}
		s.Late = slices.Delete(s.Late, i, i+1)
		s.Charged.Nanos += nanos
		t.book(t.changeAccount(), s, of, price.Amount{Nanos: nanos, Dollars: true}, of.From, r)
	}
}

// book writes a line for what a span has cost.
func (t *Tx) book(a *Account, s *SessionAccount, of Span, amount price.Amount, end int64, r *Reading) {
	if amount.IsZero() || of.history {
		return
	}
	now := t.box.utcNow()
	a.add(t.day(a), amount, of.Outside())
	c := Cost{
		At: now, Models: r.models(of, end, amount), EntryID: of.EntryID, ID: of.ID, Start: of.Start,
		FirstSeq: of.FirstSeq, DeliveredSeq: of.DeliveredSeq, Attempt: of.Attempt, SessionID: s.ID,
		Price:   price.Price{Amount: amount, Model: r.Model},
		charged: s.Charged,
	}
	t.addJSON(journal.Costs, c.encode())
	if d := t.inFlight; d != nil && of.of(d) {
		t.setInFlight(d.spending(amount))
	}
	if d := t.redeliver; d != nil && of.of(d) {
		t.setRedeliver(d.spending(amount))
	}
}

// spending is the delivery with more that was charged to its entry.
func (d *Delivery) spending(amount price.Amount) *Delivery {
	with := *d
	with.Spent = plusOfEntry(d.Spent, amount)
	return &with
}

// plusOfEntry is what an entry has cost with more of it. What the client said is for sessions: it says
// that a moment after an entry's end.
func plusOfEntry(sum, more price.Amount) price.Amount {
	sum = sum.Plus(more)
	sum.Said = 0
	return sum
}
