package priced

import (
	"heartbeat/internal/flat"
	"heartbeat/internal/price"
)

// members are those that a price has.
var members = []string{"cost_usd", "tokens", "requests", "model", "context_percent", "cost_divided", "cost_open"}

// Line returns a line of a file with the price in place of the one that it was written
// with. It stays byte for byte where that is the same, and where it is no object.
func Line(line []byte, p price.Price) []byte {
	m, err := flat.Parse(line)
	if err != nil {
		return line
	}
	var was price.Price
	if was.Members(flat.From(m)) == nil && m.Err() == nil && was == p {
		return line
	}
	var o flat.Object
	m.Without(members, o.Raw)
	_ = p.Members(flat.To(&o)) // only reading can fail
	return o.End()
}
