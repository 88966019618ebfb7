package recover

import (
	"cmp"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/budget"
	"heartbeat/internal/price"
	"heartbeat/internal/words"
)

// Reach is what a limit is about.
type Reach int

// The reaches.
const (
	OfEntry Reach = iota + 1
	OfSession
	OfDay
)

// Over says which limit is reached.
type Over struct {
	Reach Reach
	// Figures say in words what was spent, of what.
	Figures string
	// Alone says that the entry in flight reached the limit of its session or of the day
	// by itself: no other session or day would take it further.
	Alone bool
	// Run says that it is the limit of the entry's babysitter run.
	Run bool
}

// Spent is what counts towards the limits while an entry is in flight.
type Spent struct {
	inbox.Spending
	// Session is what its session has spent on everything.
	Session price.Amount
	// Took is for how long the entry was worked on, all its deliveries together.
	Took time.Duration
	// Run is what the entry's babysitter run has cost.
	Run price.Amount
}

// LimitsOf are what holds for an entry: its own limits within those of the flags.
func LimitsOf(d *inbox.Delivery, flags budget.Plan) budget.Plan {
	flags.Entry = d.Limits().Within(flags.Entry)
	return flags
}

// Judge says which limit the entry in flight, its session or the day has reached, nil for
// none. What settles the entry for good comes first.
func Judge(l budget.Plan, s Spent, attempt int) *Over {
	if figures, over := l.Entry.Over(budget.Spent{Amount: s.Entry, Time: s.Took}); over {
		return &Over{Reach: OfEntry, Figures: figures + attempts(attempt), Alone: true}
	}
	if v := judgeRun(s.Run, l.Run); v != nil {
		return v
	}
	if figures, over := l.Session.Over(budget.Spent{Amount: s.Here}); over {
		return &Over{Reach: OfSession, Figures: "in its session alone " + figures, Alone: true}
	}
	if figures, over := l.Day.Over(budget.Spent{Amount: s.Here}); over {
		return &Over{Reach: OfDay, Figures: "in one day " + figures, Alone: true}
	}
	return cmp.Or(JudgeDay(l, s.Today), JudgeSession(l, s.Session))
}

// JudgeDay is Judge for the day alone, with no entry in flight.
func JudgeDay(l budget.Plan, today price.Amount) *Over {
	if _, over := l.Day.Over(budget.Spent{Amount: today}); over {
		return &Over{Reach: OfDay, Figures: "today cost " + figures(today, l.Day)}
	}
	return nil
}

// JudgeSession is the same for a session.
func JudgeSession(l budget.Plan, session price.Amount) *Over {
	if _, over := l.Session.Over(budget.Spent{Amount: session}); over {
		return &Over{Reach: OfSession, Figures: "the session cost " + figures(session, l.Session)}
	}
	return nil
}

// figures are those of the limit that is reached.
func figures(a price.Amount, l budget.Limits) string {
	if l.Nanos > 0 && a.Dollars && a.Nanos >= l.Nanos {
		return budget.USD(a.Nanos, l.Nanos)
	}
	return fmt.Sprintf("%d of %d tokens", a.Tokens.Sum(), l.Tokens)
}

func attempts(n int) string {
	if n < 2 {
		return ""
	}
	return " in " + words.Count(n, "attempt", "attempts")
}
