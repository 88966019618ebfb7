package enforce

import (
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/budget"
	"heartbeat/internal/charging"
	"heartbeat/internal/price"
	"heartbeat/orchestrate/effect"
)

// JudgeRun says whether the babysitter run whose entry this is has reached its limit, in
// billionths of a dollar, nil if not, for an entry of no run, and where there is no limit.
// All entries of the run count, as far as .costs.jsonl has them.
func JudgeRun(box *inbox.Inbox, e inbox.Entry, limit int64) (*Verdict, error) {
	if limit == 0 {
		return nil, nil
	}
	if _, is := effect.MarkIn(e.Metadata); !is {
		return nil, nil
	}
	if own, err := e.Limits(); err != nil || own.Raised {
		return nil, nil
	}
	run, _, named := strings.Cut(e.ID, "/")
	if !named {
		return nil, nil
	}
	var sum price.Amount
	add := func(c inbox.Cost) {
		if strings.HasPrefix(c.ID, run+"/") {
			sum = sum.Plus(c.Amount)
		}
	}
	p, err := box.Spending(charging.Load(box.Dir()), add)
	if err != nil {
		return nil, err
	}
	for c := range p.Open() {
		add(c)
	}
	if _, over := (budget.Limits{Nanos: limit}).Over(budget.Spent{Amount: sum}); !over {
		return nil, nil
	}
	return &Verdict{Reach: Entry, Figures: "its run cost " + budget.USD(sum.Nanos, limit), Alone: true}, nil
}
