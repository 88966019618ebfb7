package recover

import (
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/budget"
	"heartbeat/internal/price"
	"heartbeat/orchestrate/effect"
)

// RunOf is the id of the babysitter run whose entry this is, "" for an entry of no run.
func RunOf(e inbox.Entry) string {
	if _, is := effect.MarkIn(e.Metadata); !is {
		return ""
	}
	run, _, named := strings.Cut(e.ID, "/")
	if !named {
		return ""
	}
	return run
}

// accounts are those of runs: a transaction or a view.
type accounts interface {
	Run(id string) (r inbox.RunAccount, known bool)
}

// RunLimit is what the run of an entry may cost, in billionths of a dollar, 0 for no limit:
// what a person set for it, else perRun, what the flags say. An entry that was requeued
// with a limit in dollars of its own has that one in place of its run's.
func RunLimit(of accounts, run string, e inbox.Entry, perRun int64) int64 {
	if run == "" {
		return 0
	}
	if own, err := e.Limits(); err != nil || own.Raised && own.Nanos > 0 {
		return 0
	}
	if a, _ := of.Run(run); a.Own > 0 {
		return a.Own
	}
	return perRun
}

// RunInFlight is the run of the entry in flight, "" for none, and what it may cost: see
// [RunLimit].
func RunInFlight(of accounts, d *inbox.Delivery, perRun int64) (run string, limit int64) {
	if _, is := effect.MarkOf(d); !is {
		return "", 0 // without decoding the rest
	}
	e := d.Entry()
	run = RunOf(e)
	return run, RunLimit(of, run, e, perRun)
}

// OverRun says in words what a run has cost, of what, if it has reached its limit.
func OverRun(spent price.Amount, limit int64) (figures string, over bool) {
	if _, over = (budget.Limits{Nanos: limit}).Over(budget.Spent{Amount: spent}); !over {
		return "", false
	}
	return "its run cost " + budget.USD(spent.Nanos, limit), true
}

func judgeRun(spent price.Amount, limit int64) *Over {
	figures, over := OverRun(spent, limit)
	if !over {
		return nil
	}
	return &Over{Reach: OfEntry, Figures: figures, Alone: true, Run: true}
}
