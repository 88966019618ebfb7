package metrics

import (
	"heartbeat/inbox"
	"heartbeat/internal/command/priced"
	"heartbeat/internal/price"
)

// Spending is what was spent since the inbox's journal began, as far as the meters tell.
// Dollars are nil where none are known.
type Spending struct {
	USD        *float64     `json:"cost_usd_total,omitempty"`
	OutsideUSD *float64     `json:"cost_outside_usd_total,omitempty"`
	TodayUSD   *float64     `json:"cost_today_usd,omitempty"`
	Tokens     price.Tokens `json:"tokens_total"`
	Requests   int64        `json:"requests_total"`
}

// spending is nil where nothing was ever spent: it may be that nobody counts.
func spending(box *inbox.Inbox) (*Spending, error) {
	now, err := box.Spending(priced.Load(box), nil)
	if err != nil || now.Total().IsZero() {
		return nil, err
	}
	all := now.Total()
	s := &Spending{Tokens: all.Tokens, Requests: all.Requests}
	if all.Dollars {
		total, outside, today := all.USD(), now.Outside().USD(), now.Today().USD()
		s.USD, s.OutsideUSD, s.TodayUSD = &total, &outside, &today
	}
	return s, nil
}

// spent writes what was spent.
func (f Figures) spent(t *text) {
	s := f.Spending
	if s == nil {
		return
	}
	if s.USD != nil {
		t.One("heartbeat_cost_usd_total", counter, "Dollars spent, as the client said them.", *s.USD)
		t.One("heartbeat_cost_outside_usd_total", counter, "Of those, dollars spent while no entry was in flight.", *s.OutsideUSD)
		t.One("heartbeat_cost_today_usd", gauge, "Dollars spent since midnight, local time.", *s.TodayUSD)
	}
	const tokens = "heartbeat_tokens_total"
	t.Head(tokens, counter, "Tokens, by kind.")
	for _, kind := range []struct {
		name string
		n    int64
	}{{"input", s.Tokens.Input}, {"output", s.Tokens.Output}, {"cache_read", s.Tokens.CacheRead}, {"cache_write", s.Tokens.CacheWrite}} {
		t.Series(tokens, float64(kind.n), "kind", kind.name)
	}
	t.One("heartbeat_requests_total", counter, "Requests to the model, those of subagents among them.", float64(s.Requests))
}
