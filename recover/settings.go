package recover

import (
	"cmp"
	"fmt"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/check"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

// Over is a limit that was reached: that of a day, or one of the entry in flight.
type Over struct {
	Figures string // how much was spent, of how much, in words
	// Alone says that the entry in flight reached the limit by itself, its own or a day's, so that another day would not
	// help.
	Alone bool
	Seq   int64 // the DeliveredSeq of the delivery that was judged
}

// Of returns the limit if this delivery reached it, else nil.
func (o *Over) Of(d *inbox.Delivery) *Over {
	if o != nil && o.Seq == d.DeliveredSeq {
		return o
	}
	return nil
}

// LimitsOf returns the limits of an entry: its own, within those of the flags.
func LimitsOf(d *inbox.Delivery, flags price.Plan) price.Plan {
	own, _ := price.ParseLimits(d.Limits()) // they were valid before it was delivered
	flags.Entry = own.Within(flags.Entry)
	return flags
}

// Judge returns the limit that an entry in flight or the day has reached with what was spent, or nil. A limit that
// settles the entry for good comes first. l is from [LimitsOf].
func Judge(d *inbox.Delivery, l price.Plan, s account.Spending) *Over {
	alone := func(figures string) *Over { return &Over{Figures: figures, Alone: true, Seq: d.DeliveredSeq} }
	if figures, over := l.Entry.Over(price.Spent{Amount: s.Entry, Time: Took(d)}); over {
		return alone(figures + attempts(d.Attempt))
	}
	if n := s.Here.Unpriced; n > 0 && (l.Entry.Nanos > 0 || l.Day.Nanos > 0) {
		return alone(withoutPrice(n))
	}
	if figures, over := l.Day.Over(price.Spent{Amount: s.Alone}); over {
		return alone("in one day " + figures)
	}
	over := JudgeDay(l, s.Today)
	if over != nil {
		over.Seq = d.DeliveredSeq
	}
	return over
}

// OverTime returns the limit if the entry in flight has reached its limit of time, else nil. A hook can call it only
// between two requests, so a long request or tool ends late.
func OverTime(d *inbox.Delivery, flags price.Plan) *Over {
	l := LimitsOf(d, flags)
	if l.Entry.Time == 0 {
		return nil // Judge would inspect the session's process
	}
	return Judge(d, l, account.Spending{})
}

const priceless = " went to a model whose price nobody knows, so that no limit in dollars holds"

// WantsPrice reports whether p paused a day whose limit could not be enforced. Midnight ends that pause, and the next
// request begins it anew until a person states the price.
func WantsPrice(p *inbox.Pause) bool { return p.OfLimit() && strings.Contains(p.Reason, priceless) }

// withoutPrice returns the figures of a limit in dollars that counts as reached because it could not be enforced.
func withoutPrice(requests int64) string {
	return words.Count(int(requests), "request", "requests") + priceless + ": say the price in heartbeat/prices.toml (see heartbeat costs --prices)"
}

// JudgeDay is [Judge] for the day alone, with no entry in flight.
func JudgeDay(l price.Plan, today price.Amount) *Over {
	if n := today.Unpriced; n > 0 && l.Day.Nanos > 0 {
		return &Over{Figures: "today " + withoutPrice(n)}
	}
	if _, over := l.Day.Over(price.Spent{Amount: today}); over {
		return &Over{Figures: "today cost " + figures(today, l.Day, l.Day)}
	}
	return nil
}

// DayLimit returns the limit of a day as the hook noted it last. A limit that this release cannot parse counts as none.
func DayLimit(a *account.Account) price.Limits {
	l, _ := price.ParseLimits(a.DayLimit)
	return l
}

// NearDay returns in words how much was spent today, of how much, from four fifths of the day's limit up to the limit,
// and "" otherwise.
func NearDay(day price.Limits, today price.Amount) string {
	most := price.Limits{Nanos: day.Nanos / 5 * 4, Tokens: day.Tokens / 5 * 4}
	_, over := day.Over(price.Spent{Amount: today})
	if _, near := most.Over(price.Spent{Amount: today}); over || !near {
		return ""
	}
	return "today cost " + figures(today, most, day)
}

// figures returns how much was spent of the limit, in dollars if a reached the dollars of reached, else in tokens.
func figures(a price.Amount, reached, limit price.Limits) string {
	if reached.Nanos > 0 && a.Dollars && a.Nanos >= reached.Nanos {
		return price.USDOf(a.Nanos, limit.Nanos)
	}
	return fmt.Sprintf("%d of %d tokens", a.Tokens.Sum(), limit.Tokens)
}

func attempts(n int) string {
	if n < 2 {
		return ""
	}
	return " in " + words.Count(n, "attempt", "attempts")
}

// Policy is what becomes of an orphan.
type Policy string

// The policies.
const (
	// DeadLetter keeps the orphan in .dead-letter.jsonl for an operator.
	DeadLetter Policy = "deadletter"
	// Retry delivers it again while its attempts last, and then makes it a dead letter.
	Retry Policy = "retry"
	// Drop forgets it, for senders that send it again.
	Drop Policy = "drop"
)

// DefaultMaxAttempts is how often Retry delivers an entry.
const DefaultMaxAttempts = 3

// Settings are a person's choices for an inbox. Every actor reads them the same way.
type Settings struct {
	Policy Policy // DeadLetter if empty
	// Chosen says that a person chose the policy. Otherwise the entry of a babysitter run is retried, because the run
	// cannot go on without its answer.
	Chosen      bool
	MaxAttempts int // DefaultMaxAttempts if 0
	Limits      price.Plan
	// Checks are the checks of the wiring. An asker without them (nil) delivers nothing, so it refuses no entry for them.
	Checks *check.Set
}

func (s Settings) policyFor(ofRun bool) Policy {
	if ofRun && !s.Chosen {
		return Retry
	}
	return cmp.Or(s.Policy, DeadLetter)
}

// Asker is who asks what becomes of an entry, or which entry is next.
type Asker struct {
	Settings
	Box *inbox.Inbox
	// Client is the client's process: the one that this event is from, or that the asker started and saw end. It may
	// be zero.
	Client inbox.Process
	Start  string // names the start of a session host's client, if the asker is one of that client's hooks
	Stop   *Stop  // the event of the hook that asks, nil for all others and for a hook without a client
	Force  bool   // a person's order to take the entry from an owner that lives
	// Elsewhere returns why the entry of a babysitter run need not be delivered, "" if it must be. If Elsewhere is nil,
	// such entries are left to the hook that delivers them.
	Elsewhere func(inbox.Entry) (why string, err error)
	Note      func(format string, args ...any) // gets sentences for people; nil drops them
}

func (a Asker) note(format string, args ...any) {
	if a.Note != nil {
		a.Note(format, args...)
	}
}
