package inbox

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
	"heartbeat/internal/money/price"
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
	// Models are what of it was spent on each model, nil where there was but one.
	Models []price.ByModel

	charged price.Amount // the session's account after this line: see [SessionAccount]
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
	models := modelsText(c.Models)
	if to.Text("models", &models); to.Reads() {
		c.Models = modelsOf(models)
	}
	to.Text("charged", charged)
	return err
}

// modelsText has a model and its amount on each line.
func modelsText(all []price.ByModel) (text string) {
	for _, of := range all { // a few
		text += of.Model + "\t" + amountText(of.Amount) + "\n"
	}
	return text
}

// modelsOf leaves out what modelsText does not write.
func modelsOf(text string) (all []price.ByModel) {
	for l := range strings.Lines(text) {
		model, amount, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "\t")
		if a, err := amountOf(amount); err == nil && a.Requests > 0 {
			all = append(all, price.ByModel{Model: model, Amount: a})
		}
	}
	return all
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
	case c.Nanos < 0 || c.Said < 0:
		err = errors.New("its member cost_usd or client_usd is negative")
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

// costSpan is how much of .costs.jsonl is searched.
const costSpan = 16 << 20

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
