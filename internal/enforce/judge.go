package enforce

import (
	"cmp"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/budget"
	"heartbeat/internal/cli"
	"heartbeat/internal/price"
	"heartbeat/internal/words"
)

// Reach is what a limit is about.
type Reach int

// The reaches.
const (
	Entry Reach = iota + 1
	Session
	Day
)

// Verdict says which limit is reached.
type Verdict struct {
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

// Limits are what holds for an entry: its own limits within those of the flags.
func Limits(d *inbox.Delivery, flags *cli.LimitFlags) cli.LimitFlags {
	l := *flags
	l.Entry = d.Limits().Within(flags.Entry)
	return l
}

// Judge says which limit the entry in flight, its session or the day has reached, nil for
// none. What settles the entry for good comes first.
func Judge(l cli.LimitFlags, s Spent, attempt int) *Verdict {
	if figures, over := l.Entry.Over(budget.Spent{Amount: s.Entry, Time: s.Took}); over {
		return &Verdict{Reach: Entry, Figures: figures + attempts(attempt), Alone: true}
	}
	if v := judgeRun(s.Run, l.Run); v != nil {
		return v
	}
	if figures, over := l.Session.Over(budget.Spent{Amount: s.Here}); over {
		return &Verdict{Reach: Session, Figures: "in its session alone " + figures, Alone: true}
	}
	if figures, over := l.Day.Over(budget.Spent{Amount: s.Here}); over {
		return &Verdict{Reach: Day, Figures: "in one day " + figures, Alone: true}
	}
	return cmp.Or(JudgeDay(l, s.Today), JudgeSession(l, s.Session))
}

// JudgeDay is Judge for the day alone, with no entry in flight.
func JudgeDay(l cli.LimitFlags, today price.Amount) *Verdict {
	if _, over := l.Day.Over(budget.Spent{Amount: today}); over {
		return &Verdict{Reach: Day, Figures: "today cost " + figures(today, l.Day)}
	}
	return nil
}

// JudgeSession is the same for a session.
func JudgeSession(l cli.LimitFlags, session price.Amount) *Verdict {
	if _, over := l.Session.Over(budget.Spent{Amount: session}); over {
		return &Verdict{Reach: Session, Figures: "the session cost " + figures(session, l.Session)}
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
