// Package price has what an entry, a session or a day cost.
//
// Dollars are whole billionths, so that the parts of a sum add up to it exactly. Each request is priced by its own
// usage and the [Table] of what models cost.
package price

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"heartbeat/internal/flat"
)

// Price is what an entry cost, over all its attempts.
//
// As JSON it is an object of the members cost_usd (absent if no dollars are known), tokens {input, output, cache_read,
// cache_write}, requests, unpriced, model and client_usd. Its methods for encoding/json would hide the other members of
// a struct that embeds it: a record takes [Price.Members] or [Fields].
type Price struct {
	Amount
	Model string // of the last request
}

// ByModel is what was spent on one model.
type ByModel struct {
	Model string
	Amount
}

// In adds of to the amounts of all models, and moves its model to the front.
func (of ByModel) In(all []ByModel) []ByModel {
	if i := slices.IndexFunc(all, func(o ByModel) bool { return o.Model == of.Model }); i >= 0 {
		of.Amount = of.Plus(all[i].Amount)
		all = slices.Delete(all, i, i+1)
	}
	return slices.Insert(all, 0, of)
}

// Members writes or reads the members of a price in a record.
func (p *Price) Members(c flat.Codec) error {
	f := p.Fields()
	err := cmp.Or(flat.Pointer(c, "cost_usd", &f.CostUSD), flat.Pointer(c, "tokens", &f.Tokens))
	c.NonZero("requests", &f.Requests)
	c.NonZero("unpriced", &f.Unpriced)
	c.Text("model", &f.Model)
	if err = cmp.Or(err, flat.Pointer(c, "client_usd", &f.ClientUSD)); !c.Reads() || err != nil {
		return err
	}
	*p = f.Price()
	switch t := p.Tokens; {
	case min(t.Input, t.Output, t.CacheRead, t.CacheWrite) < 0:
		return errors.New("its member tokens: a count is negative")
	case min(p.Requests, p.Unpriced) < 0:
		return errors.New("its member requests or unpriced is negative")
	}
	return nil
}

// JSON returns the price as an object.
func (p Price) JSON() []byte {
	var o flat.Object
	_ = p.Members(flat.To(&o)) // only reading can fail
	return o.End()
}

// MarshalJSON is [Price.JSON].
func (p Price) MarshalJSON() ([]byte, error) { return p.JSON(), nil }

// UnmarshalJSON reads an object, which may have other members too.
func (p *Price) UnmarshalJSON(object []byte) error {
	m, err := flat.Parse(object)
	if err != nil {
		return err
	}
	return cmp.Or(p.Members(flat.From(m)), m.Err())
}

// Fields are the members of a price, to embed in a struct for encoding/json. They match [Price.Members].
type Fields struct {
	CostUSD   *Nanos  `json:"cost_usd,omitempty"`
	Tokens    *Tokens `json:"tokens,omitempty"`
	Requests  int64   `json:"requests,omitempty"`   // with those of subagents
	Unpriced  int64   `json:"unpriced,omitempty"`   // requests that cost_usd leaves out, for want of a price
	Model     string  `json:"model,omitempty"`      // of the last request
	ClientUSD *Nanos  `json:"client_usd,omitempty"` // what the client's own totals grew by
}

// Fields returns the price as members.
func (p Price) Fields() Fields {
	f := Fields{Requests: p.Requests, Unpriced: p.Unpriced, Model: p.Model}
	if p.ClientNanos != 0 {
		f.ClientUSD = new(Nanos(p.ClientNanos))
	}
	if p.Dollars {
		f.CostUSD = new(Nanos(p.Nanos))
	}
	if p.hasRequests() {
		f.Tokens = &p.Tokens
	}
	return f
}

// Price returns the members as a price.
func (f Fields) Price() Price {
	p := Price{Amount{Requests: f.Requests, Unpriced: f.Unpriced}, f.Model}
	if f.ClientUSD != nil {
		p.ClientNanos = int64(*f.ClientUSD)
	}
	if f.CostUSD != nil {
		p.Nanos, p.Dollars = int64(*f.CostUSD), true
	}
	if f.Tokens != nil {
		p.Tokens = *f.Tokens
	}
	return p
}

// Nanos are billionths of a dollar. JSON has them as a number of dollars, with every digit.
type Nanos int64

// String returns dollars with every digit, such as 0.0336.
func (n Nanos) String() string {
	sign, digits := "", uint64(n)
	if n < 0 {
		sign, digits = "-", -digits
	}
	text := fmt.Sprintf("%s%d.%09d", sign, digits/perDollar, digits%perDollar)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalJSON is [Nanos.String].
func (n Nanos) MarshalJSON() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalJSON reads dollars, rounded to a billionth.
func (n *Nanos) UnmarshalJSON(number []byte) error {
	nanos, err := DollarsOf(string(number))
	*n = Nanos(nanos)
	return err
}
