package inbox

import (
	"encoding/json"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// Cost is what an entry has cost, as its outcome states it. This package only passes it on: package price computes
// it, and reads it again.
type Cost struct {
	CostUSD   json.Number `json:"cost_usd,omitempty"`
	Tokens    *Tokens     `json:"tokens,omitempty"`
	Requests  int64       `json:"requests,omitempty"`   // with those of subagents
	Unpriced  int64       `json:"unpriced,omitempty"`   // requests that cost_usd leaves out, for want of a price
	Model     string      `json:"model,omitempty"`      // of the last request
	ClientUSD json.Number `json:"client_usd,omitempty"` // what the client's own totals grew by
}

// Tokens are those of one or many requests, as the provider counts them.
type Tokens struct {
	Input      int64 `json:"input"` // without what the cache held
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Members writes or reads the members in a record.
func (f *Cost) Members(c flat.Codec) error {
	dollars := func(name string, n *json.Number) {
		raw := json.RawMessage(*n)
		c.Raw(name, &raw)
		*n = json.Number(raw)
	}
	dollars("cost_usd", &f.CostUSD)
	err := flat.Pointer(c, "tokens", &f.Tokens)
	c.NonZero("requests", &f.Requests)
	c.NonZero("unpriced", &f.Unpriced)
	c.Text("model", &f.Model)
	dollars("client_usd", &f.ClientUSD)
	return err
}

// Accountant keeps account of what sessions spend on entries, of which this package knows nothing. A transaction tells
// its accountant of each step that decides whose spending is whose. The account is a part of the record, so that both
// are committed together. Package account has the only accountant.
type Accountant interface {
	// Enter begins the turn of an entry that is delivered, and Leave ends it. Rebind moves it to the turn that the
	// delivery names now, and NeverArrived undoes it.
	Enter(d *Delivery)
	Leave(d *Delivery)
	Rebind(d *Delivery)
	NeverArrived(d *Delivery)
	// Arrive says that a session begins, or continues in another process.
	Arrive(session string)
	// Raise says that a person set the limits of an entry.
	Raise(entryID string)
	// CostOf returns what a delivery's outcome says of its cost.
	CostOf(d *Delivery) Cost
	// Record returns the account for the next record, nil if it did not change.
	Record() []byte
}

// newAccountant makes the accountant of a transaction or a view.
var newAccountant = func(Books) Accountant { return noAccountant{} }

// SetAccountant gives every transaction and view of this program an accountant. Call it in an init function: so no
// caller of [Open] can forget it.
func SetAccountant(of func(Books) Accountant) { newAccountant = of }

// Accountant returns the accountant of the transaction or the view.
func (t *state) Accountant() Accountant { return t.tx.accountant }

// noAccountant leaves the account as it is, in a program that links none.
type noAccountant struct{}

func (noAccountant) Enter(*Delivery)           {}
func (noAccountant) Leave(*Delivery)           {}
func (noAccountant) Rebind(*Delivery)          {}
func (noAccountant) NeverArrived(*Delivery)    {}
func (noAccountant) Arrive(string)             {}
func (noAccountant) Raise(string)              {}
func (noAccountant) CostOf(*Delivery) (c Cost) { return c }
func (noAccountant) Record() []byte            { return nil }

// Books are what an [Accountant] sees of its transaction or view, and what it may change.
type Books struct{ tx *Tx }

// Account returns the account as of the last commit, nil if it was not written in this directory.
func (b Books) Account() json.RawMessage { return b.tx.st.Account }

// Change makes the next commit ask for [Accountant.Record].
func (b Books) Change() { b.tx.dirty = true }

// InFlight returns the entry in flight, and Redeliver the one that was given back; nil for none.
func (b Books) InFlight() *Delivery  { return b.tx.inFlight }
func (b Books) Redeliver() *Delivery { return b.tx.redeliver }

// SetSpent changes the Spent of either.
func (b Books) SetSpent(d *Delivery, spent string) {
	with := *d
	with.Spent = spent
	if d == b.tx.inFlight {
		b.tx.setInFlight(&with)
	} else {
		b.tx.setRedeliver(&with)
	}
}

// Add appends a line to .costs.jsonl.
func (b Books) Add(line []byte) { b.tx.addJSON(journal.Costs, line) }

// costSpan is how much of .costs.jsonl [Books.Last] reads.
const costSpan = 16 << 20

// Last visits the last lines of .costs.jsonl, oldest first, with those that this transaction adds.
func (b Books) Last(visit func(line []byte)) error {
	return b.tx.eachLine(journal.Costs, -costSpan, visit)
}

// Now returns the time, by the inbox's clock.
func (b Books) Now() time.Time { return b.tx.box.opts.Now() }

// Warn adds to [Tx.Warnings].
func (b Books) Warn(format string, args ...any) { b.tx.warn(format, args...) }
