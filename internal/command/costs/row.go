package costs

import (
	"encoding/json"

	"heartbeat/internal/price"
)

// row is a [Group] as --json prints it.
type row struct {
	By By `json:"by"`
	// What is left out for a group that has a name.
	What      Kind    `json:"what,omitempty"`
	Day       string  `json:"day,omitempty"`
	SessionID string  `json:"session_id,omitempty"`
	ID        string  `json:"id,omitempty"`
	EntryID   string  `json:"entry_id,omitempty"`
	Start     *int64  `json:"start_offset,omitempty"`
	Value     *string `json:"value,omitempty"`
	Entries   int64   `json:"entries"`
	price.Fields
	OutsideUSD *price.Nanos `json:"outside_usd,omitempty"`
	Unpriced   int64        `json:"unpriced_requests,omitempty"`
}

// JSON is the group as an object.
func (g *Group) JSON(by By) ([]byte, error) {
	r := row{By: by, Entries: g.Entries, Fields: g.price().Fields(), Unpriced: g.Unpriced}
	if by != Entry {
		r.Model = "" // a group may have many
	}
	if g.Outside.Dollars {
		usd := price.Nanos(g.Outside.Nanos)
		r.OutsideUSD = &usd
	}
	switch {
	case g.Kind != Named:
		r.What = g.Kind
	case by == Day:
		r.Day = g.Name
	case by == Session:
		r.SessionID = g.Name
	case by == Entry:
		r.ID, r.EntryID, r.Start = g.Name, g.EntryID, &g.Start
	default:
		r.Value = &g.Name
	}
	return json.Marshal(r)
}

// price is the group's spending with its marks.
func (g *Group) price() price.Price {
	return price.Price{Amount: g.Spent, Divided: g.Divided, Open: g.Open, Model: g.Model, ContextPercent: -1}
}
