package recover

import (
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/check"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/budget"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
)

// Reach is what a limit is about.
type Reach int

// The reaches.
const (
	OfEntry Reach = iota + 1
	OfDay
)

// Over says which limit is reached.
type Over struct {
	Reach Reach
	// Figures say in words what was spent, of what.
	Figures string
	// Alone says that the entry in flight reached the limit of the day by itself: no other day
	// would take it further.
	Alone bool
}

// Spent is what counts towards the limits while an entry is in flight.
type Spent struct {
	inbox.Spending
	// Took is for how long the entry was worked on, all its deliveries together.
	Took time.Duration
}

// LimitsOf are what holds for an entry: its own limits within those of the flags.
func LimitsOf(d *inbox.Delivery, flags budget.Plan) budget.Plan {
	flags.Entry = d.Limits().Within(flags.Entry)
	return flags
}

// Judge says which limit the entry in flight or the day has reached, nil for none. What settles the entry for good comes first.
func Judge(l budget.Plan, s Spent, attempt int) *Over {
	if figures, over := l.Entry.Over(budget.Spent{Amount: s.Entry, Time: s.Took}); over {
		return &Over{Reach: OfEntry, Figures: figures + attempts(attempt), Alone: true}
	}
	if n := s.Here.Unpriced; n > 0 && (l.Entry.Nanos > 0 || l.Day.Nanos > 0) {
		return &Over{Reach: OfEntry, Figures: withoutPrice(n), Alone: true}
	}
	if figures, over := l.Day.Over(budget.Spent{Amount: s.Here}); over {
		return &Over{Reach: OfDay, Figures: "in one day " + figures, Alone: true}
	}
	return JudgeDay(l, s.Today)
}

// withoutPrice says why a limit in dollars is taken as reached: it could not hold.
func withoutPrice(requests int64) string {
	return words.Count(int(requests), "request", "requests") + " went to a model whose price nobody knows, so that no limit in dollars holds: " +
		"say the price in heartbeat/prices.toml (see heartbeat costs --prices)"
}

// JudgeDay is Judge for the day alone, with no entry in flight.
func JudgeDay(l budget.Plan, today price.Amount) *Over {
	if n := today.Unpriced; n > 0 && l.Day.Nanos > 0 {
		return &Over{Reach: OfDay, Figures: "today " + withoutPrice(n)}
	}
	if _, over := l.Day.Over(budget.Spent{Amount: today}); over {
		return &Over{Reach: OfDay, Figures: "today cost " + figures(today, l.Day)}
	}
	return nil
}

// NearDay says in words what was spent today, of what, where that is four fifths of a limit of the day or
// more, and not all of it: a person is told once a day.
func NearDay(day budget.Limits, today price.Amount) (text string, near bool) {
	if _, over := day.Over(budget.Spent{Amount: today}); over {
		return "", false
	}
	most := budget.Limits{Nanos: day.Nanos / 5 * 4, Tokens: day.Tokens / 5 * 4}
	_, near = most.Over(budget.Spent{Amount: today})
	switch {
	case !near:
		return "", false
	case most.Nanos > 0 && today.Dollars && today.Nanos >= most.Nanos:
		return "today cost " + budget.USD(today.Nanos, day.Nanos), true
	}
	return fmt.Sprintf("today cost %d of %d tokens", today.Tokens.Sum(), day.Tokens), true
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

// Policy says what becomes of an orphan.
type Policy string

// The policies.
const (
	// DeadLetter keeps the orphan in .dead-letter.jsonl for an operator.
	DeadLetter Policy = "deadletter"
	// Retry delivers it again, as often as the attempts allow, and keeps it as
	// a dead letter after that.
	Retry Policy = "retry"
	// Drop forgets it: whoever sent it sends it again.
	Drop Policy = "drop"
)

// DefaultMaxAttempts is how often an entry is delivered before Retry gives up.
const DefaultMaxAttempts = 3

// Settings are what a person has set for an inbox. They mean the same to every actor.
type Settings struct {
	Policy Policy // DeadLetter if empty
	// Chosen says that a person chose the policy. Otherwise an entry of a babysitter run is
	// delivered again, since the run cannot go on without its answer.
	Chosen      bool
	MaxAttempts int // DefaultMaxAttempts if 0
	Limits      budget.Plan
	// Checks are those of the wiring; nil for an asker that does not know them, and so
	// delivers nothing and refuses nothing because of them.
	Checks *check.Set
}

func (s Settings) policyFor(d *inbox.Delivery) Policy {
	if _, ofRun := effect.MarkOf(d); ofRun && !s.Chosen {
		return Retry
	}
	if s.Policy == "" {
		return DeadLetter
	}
	return s.Policy
}

func (s Settings) attempts() int {
	if s.MaxAttempts == 0 {
		return DefaultMaxAttempts
	}
	return s.MaxAttempts
}

// Asker is who asks what becomes of an entry, or which one is next.
type Asker struct {
	Settings
	Box *inbox.Inbox
	// Client is the process of the client whose event this is, or that the asker started
	// and saw the end of; nobody if it has none.
	Client Process
	// Start names the start of a session host's client, of which the asker is a hook.
	Start string
	// Force is a person's word that an entry is taken from an owner that lives.
	Force bool
	// Elsewhere says why the entry of a babysitter run need not be delivered, "" where it
	// has to be. Without it such entries are left to the hook that delivers them, which
	// knows.
	Elsewhere func(inbox.Entry) (why string, err error)
	// Note gets sentences for people; nil drops them.
	Note func(format string, args ...any)
}

func (a Asker) note(format string, args ...any) {
	if a.Note != nil {
		a.Note(format, args...)
	}
}

// barredBy is the owner of the entry in flight, if that lives and keeps the asker from
// settling it; nil if the asker may: it is the owner, a person has said so, or no owner lives.
func (a Asker) barredBy(tx *inbox.Tx, d *inbox.Delivery) *Owner {
	e := EvidenceOf(d)
	if a.Force || e.Client != 0 && int64(a.Client.PID) == e.Client || e.Prompted && e.Start != "" && e.Start == a.Start {
		return nil // a number that is another process's by now belongs to nobody else either
	}
	if o := OwnerOf(tx, d); o.Life == machine.Alive && o.PID != a.Client.PID {
		return &o
	}
	return nil
}
