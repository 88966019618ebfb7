package command

import (
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
	"heartbeat/internal/see"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// spentToday is what was spent since midnight, and the limits of a day.
type spentToday struct {
	Date string `json:"date"` // local
	price.Fields
	LimitUSD    *price.Nanos `json:"limit_usd,omitempty"`
	LimitTokens int64        `json:"limit_tokens,omitempty"`
}

// String is "3.10 of 50.00 USD", or without the limit if there is none. Tokens appear if no dollars are known, or
// if tokens are limited.
func (t spentToday) String() string {
	p := t.Price()
	var parts []string
	switch {
	case p.Dollars && t.LimitUSD != nil:
		parts = append(parts, p.Cell()+" of "+price.FormatUSD(int64(*t.LimitUSD))+" USD")
	case p.Dollars:
		parts = append(parts, p.String())
	case t.LimitUSD != nil && p.Requests > 0:
		parts = append(parts, "an unknown part of "+price.FormatUSD(int64(*t.LimitUSD))+" USD")
	case t.LimitUSD != nil:
		parts = append(parts, "nothing of "+price.FormatUSD(int64(*t.LimitUSD))+" USD")
	}
	switch sum := price.FormatTokens(p.Tokens.Sum()); {
	case t.LimitTokens > 0:
		parts = append(parts, sum+" of "+price.FormatTokens(t.LimitTokens)+" tokens")
	case !p.Dollars && p.Requests > 0:
		parts = append(parts, sum+" tokens")
	}
	return strings.Join(parts, ", ")
}

// spent sets what was spent today and on the entry in flight. What cannot be read becomes a warning.
func (st *status) spent(box *inbox.Inbox, f see.Facts) {
	now, err := book.Spending(box, nil)
	if err != nil {
		st.Warnings = append(st.Warnings, "what was spent cannot be told: "+err.Error())
		return
	}
	if d := f.InFlight; d != nil && st.InFlight != nil {
		if p, known := now.OfDelivery(d); known {
			st.InFlight.Fields = p.Fields()
		}
	}
	limit := recovery.DayLimit(&now.Account)
	if now.Total().IsZero() && !limit.Any() {
		return // nobody counts, or nothing was spent yet
	}
	spent := price.Price{Amount: now.Today()}
	if n := spent.Unpriced; n > 0 {
		st.Warnings = append(st.Warnings, "what was spent today is at least that much: for "+words.Count(int(n), "request", "requests")+
			" nobody knows the price of the model: say it in "+meter.PricesPlace()+" (heartbeat costs --prices)")
	}
	spent.Dollars = now.Total().Dollars // dollars are known, so none today is 0
	st.Today = &spentToday{Date: f.Now.Local().Format(time.DateOnly), Fields: spent.Fields(), LimitTokens: limit.Tokens}
	if limit.Nanos > 0 {
		usd := price.Nanos(limit.Nanos)
		st.Today.LimitUSD = &usd
	}
}
