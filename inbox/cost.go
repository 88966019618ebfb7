package inbox

import (
	"encoding/json"
	"errors"
	"math/bits"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/price"
)

// Cost is one line of .costs.jsonl: something that was charged. What an entry cost is
// the sum of its lines; a line never takes anything back.
type Cost struct {
	At time.Time
	// EntryID is empty outside of entries. FirstSeq is the commit of the entry's first
	// delivery, which no other entry has: it tells an entry from one with the same text
	// at the same place in an inbox that was replaced. DeliveredSeq is the commit of the
	// delivery that was charged.
	EntryID, ID            string
	Start                  int64
	FirstSeq, DeliveredSeq int64
	Attempt                int
	SessionID              string
	price.Price

	// These are the session's account after this line: see [SessionAccount].
	meter, boot string
	charged     price.Amount
	base        int64
}

// Outside reports whether the line belongs to no entry.
func (c Cost) Outside() bool { return c.EntryID == "" }

func (c *Cost) members(to flat.Codec, charged *string) error {
	to.Time("at", &c.At)
	to.Text("entry_id", &c.EntryID)
	to.Text("id", &c.ID)
	to.NonZero("start_offset", &c.Start)
	to.NonZero("first_seq", &c.FirstSeq)
	to.NonZero("delivered_seq", &c.DeliveredSeq)
	attempt := int64(c.Attempt)
	to.NonZero("attempt", &attempt)
	c.Attempt = int(attempt)
	outside := c.Outside()
	to.Flag("outside", &outside)
	to.Text("session_id", &c.SessionID)
	err := c.Price.Members(to)
	to.Text("meter", &c.meter)
	to.Text("charged", charged)
	to.Text("boot", &c.boot)
	to.NonZero("base", &c.base)
	return err
}

func (c *Cost) encode() []byte {
	var o flat.Object
	charged := amountText(c.charged)
	_ = c.members(flat.To(&o), &charged) // only reading can fail
	return o.End()
}

// ParseCost reads a line of .costs.jsonl.
func ParseCost(line []byte) (c Cost, err error) {
	m, err := flat.Parse(line)
	if err != nil {
		return Cost{}, err
	}
	var charged string
	err = c.members(flat.From(m), &charged)
	if err == nil {
		err = m.Err()
	}
	if err == nil {
		c.charged, err = amountOf(charged)
	}
	switch {
	case err != nil:
	case c.At.IsZero():
		err = errors.New("it has no member at")
	case c.Nanos < 0:
		err = errors.New("its member cost_usd is negative")
	}
	if err != nil {
		return Cost{}, err
	}
	return c, nil
}

// MarshalJSON writes the line as .costs.jsonl has it.
func (c Cost) MarshalJSON() ([]byte, error) { return c.encode(), nil }

var _ json.Marshaler = Cost{}

// TailCosts reads .costs.jsonl (a [Cost] a line) as TailResults reads the results.
func (b *Inbox) TailCosts(n int) (*Tail, error) { return b.tail(journal.Costs, n) }

// chargeLate divides dollars that became known after their tokens were charged, as under
// -p, where the client says what it all cost when it ends.
func (t *Tx) chargeLate(s *SessionAccount, r *Reading) {
	if s.unpriced == 0 || len(s.Spans) == 0 || s.Spans[0].mark == 0 {
		return
	}
	m, ok := r.boundary(s.Spans[0].mark)
	late := m.Before.Nanos - s.Charged.Nanos
	if !ok || m.Offset != s.Spans[0].mark || late <= 0 {
		return
	}
	costs := t.unpricedCosts(s)
	if len(costs) == 0 {
		return // it is the first span's, then
	}
	to := s.Charged
	to.Nanos, to.Dollars = to.Nanos+late, true
	s.chargeUpTo(to, r, t.boot)
	weights := make([]int64, len(costs))
	for i, c := range costs {
		weights[i] = c.Tokens.Weight()
	}
	for i, share := range divide(late, weights) {
		c := costs[i]
		of := Span{EntryID: c.EntryID, ID: c.ID, Start: c.Start, FirstSeq: c.FirstSeq, DeliveredSeq: c.DeliveredSeq, Attempt: c.Attempt}
		t.book(t.changeAccount(), s, of, price.Amount{Nanos: share, Dollars: true}, r, true)
	}
	s.unpriced = 0
}

// divide splits a sum by weights, to the last billionth; evenly if all are 0.
func divide(sum int64, weights []int64) []int64 {
	shares := make([]int64, len(weights))
	var largest, total uint64
	for _, w := range weights {
		largest = max(largest, uint64(max(0, w)))
	}
	shift := max(0, bits.Len64(largest)+bits.Len(uint(len(weights)))-63) // so that their sum does not overflow
	weight := func(i int) uint64 { return uint64(max(0, weights[i])) >> shift }
	for i := range weights {
		total += weight(i)
	}
	rest := sum
	for i := range shares {
		switch {
		case i == len(shares)-1:
			shares[i] = rest
		case total == 0:
			shares[i] = sum / int64(len(shares))
		default:
			hi, lo := bits.Mul64(uint64(sum), weight(i))
			q, _ := bits.Div64(hi, lo, total)
			shares[i] = min(int64(q), rest)
		}
		rest -= shares[i]
	}
	return shares
}

// costSpan is how much of .costs.jsonl is searched.
const costSpan = 16 << 20

// unpricedCosts are the lines of earlier spans of a session that have no dollars, one for
// each delivery.
func (t *Tx) unpricedCosts(s *SessionAccount) (costs []Cost) {
	var all []Cost
	t.eachCostOf(s.ID, func(c Cost) {
		if !c.Dollars {
			all = append(all, c)
		}
	})
	all = all[:max(0, len(all)-int(s.unpricedHere))]
	all = all[max(0, len(all)-int(s.unpriced)):]
	at := map[[2]int64]int{}
	for _, c := range all {
		i, there := at[[2]int64{c.FirstSeq, c.DeliveredSeq}]
		if !there {
			at[[2]int64{c.FirstSeq, c.DeliveredSeq}] = len(costs)
			costs = append(costs, c)
			continue
		}
		costs[i].Tokens = costs[i].Tokens.Plus(c.Tokens)
	}
	return costs
}

// lastCharged is the last line of a session.
func (t *Tx) lastCharged(session string) (last Cost, found bool) {
	t.eachCostOf(session, func(c Cost) { last, found = c, true })
	return last, found
}

// eachCostOf calls f for the last lines of a session, with those of this transaction. What
// cannot be read is not there.
func (t *Tx) eachCostOf(session string, f func(Cost)) {
	err := t.eachLine(journal.Costs, -costSpan, func(l []byte) {
		if flat.Value(l).Get("session_id").Text() != session {
			return
		}
		if c, err := ParseCost(l); err == nil {
			f(c)
		}
	})
	if err != nil {
		t.warn("what session %s has cost cannot be read: %v", shortName(session), err)
	}
}
