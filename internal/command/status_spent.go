package command

import (
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/budget"
	"heartbeat/internal/command/priced"
	"heartbeat/internal/price"
	"heartbeat/internal/why"
	"heartbeat/internal/words"
)

// spentToday is what was spent since midnight, and the limits of a day.
type spentToday struct {
	Date string `json:"date"` // local
	price.Fields
	LimitUSD    *price.Nanos `json:"limit_usd,omitempty"`
	LimitTokens int64        `json:"limit_tokens,omitempty"`
}

// String is "3.10 of 50.00 USD", without the limit where there is none. Tokens are told
// where no dollars are known, or where they are limited.
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

// spent sets what was spent today and on the entry in flight. What cannot be read is a
// warning.
func (st *status) spent(box *inbox.Inbox, f why.Facts) {
	now, err := box.Spending(priced.Load(box), nil)
	if err != nil {
		st.Warnings = append(st.Warnings, "what was spent cannot be told: "+err.Error())
		return
	}
	if d := f.InFlight; d != nil && st.InFlight != nil {
		if p, known := now.OfDelivery(d); known {
			st.InFlight.Fields = p.Fields()
		}
	}
	st.withoutDollars(box, now, f)
	limit := now.Account.DayLimit
	if now.Total().IsZero() && !limit.Any() {
		return // nobody counts, or nothing was spent yet
	}
	spent := price.Price{Amount: now.Today(), ContextPercent: -1}
	spent.Dollars = now.Total().Dollars // none today is 0 of them
	st.Today = &spentToday{Date: f.Now.Local().Format(time.DateOnly), Fields: spent.Fields(), LimitTokens: limit.Tokens}
	if limit.Nanos > 0 {
		usd := price.Nanos(limit.Nanos)
		st.Today.LimitUSD = &usd
	}
}

// withoutDollars warns of limits in dollars where the client says none.
func (st *status) withoutDollars(box *inbox.Inbox, now *inbox.Prices, f why.Facts) {
	a := now.Account
	entry := a.EntryLimit
	if f.InFlight != nil {
		entry = f.InFlight.Limits().Within(entry)
	}
	var limits []string
	for _, of := range []struct {
		limit budget.Limits
		what  string
	}{{entry, "an entry"}, {a.SessionLimit, "a session"}, {a.DayLimit, "a day"}} {
		if of.limit.Nanos > 0 {
			limits = append(limits, price.FormatUSD(of.limit.Nanos)+" USD "+of.what)
		}
	}
	if len(limits) == 0 {
		return
	}
	where := ""
	session, says := silent(box, a, f)
	if session != "" {
		where = " in session " + words.Short(session) + " while it runs"
	} else if all := now.Total(); says || all.Dollars || all.Requests == 0 {
		return
	}
	which := "the limit of " + limits[0] + " does not hold"
	if last := len(limits) - 1; last > 0 {
		which = "the limits of " + strings.Join(limits[:last], ", ") + " and " + limits[last] + " do not hold"
	}
	st.Warnings = append(st.Warnings, which+where+": the client has said no dollars, since no status line of it runs heartbeat-stop meter for this inbox (under -p it says them at its end): see heartbeat doctor, or limit tokens, which are counted")
}

// silent is a session that runs, and whose client says no dollars; empty for none. says
// reports whether that of another one does.
func silent(box *inbox.Inbox, a inbox.Account, f why.Facts) (session string, says bool) {
	load := priced.Load(box)
	for _, of := range a.Sessions {
		known := slices.IndexFunc(f.Sessions, func(s why.Session) bool { return s.ID == of.ID })
		if of.Closed || known >= 0 && !f.Sessions[known].Runs() {
			continue
		}
		r := load(of.ID)
		if r != nil && r.Client == "" && r.Spent.Requests > 0 {
			return of.ID, says
		}
		says = says || r != nil && r.Client != ""
	}
	return "", says
}
