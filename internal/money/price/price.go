// Package price has what an entry, a session or a day cost, and the limits of that.
//
// Dollars are whole billionths, so that the parts of a sum add up to it exactly. Each request is priced by its own
// usage and the [Table] of what models cost.
package price

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/flat"
)

// Price is what an entry cost, over all its attempts.
//
// As JSON it is an object of the members cost_usd (absent if no dollars are known), tokens {input, output, cache_read,
// cache_write}, requests, unpriced, model and client_usd. Its methods for encoding/json would hide the other members of
// a struct that embeds it: a record takes [Price.Members] or [inbox.Cost].
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
	f := p.Cost()
	err := f.Members(c)
	if !c.Reads() || err != nil {
		return err
	}
	if *p, err = of(f); err != nil {
		return fmt.Errorf("its member cost_usd or client_usd: %w", err)
	}
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

// Cost returns the price as members.
func (p Price) Cost() inbox.Cost {
	f := inbox.Cost{Requests: p.Requests, Unpriced: p.Unpriced, Model: p.Model}
	if p.ClientNanos != 0 {
		f.ClientUSD = json.Number(Nanos(p.ClientNanos).String())
	}
	if p.Dollars {
		f.CostUSD = json.Number(Nanos(p.Nanos).String())
	}
	if p.hasRequests() {
		f.Tokens = new(inbox.Tokens(p.Tokens))
	}
	return f
}

// Of returns the members as a price, without what is no amount.
func Of(f inbox.Cost) Price {
	p, _ := of(f)
	return p
}

func of(f inbox.Cost) (_ Price, err error) {
	p := Price{Amount{Requests: f.Requests, Unpriced: f.Unpriced}, f.Model}
	read := func(usd json.Number, nanos *int64) bool {
		n, bad := DollarsOf(string(usd))
		if bad == nil {
			*nanos = n
		} else if usd != "" {
			err = bad
		}
		return bad == nil
	}
	p.Dollars = read(f.CostUSD, &p.Nanos)
	read(f.ClientUSD, &p.ClientNanos)
	if f.Tokens != nil {
		p.Tokens = Tokens(*f.Tokens)
	}
	return p, err
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
