package recover

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/budget"
	"heartbeat/internal/machine"
	"heartbeat/internal/price"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
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
	if n := s.Here.Unpriced; n > 0 && (l.Entry.Nanos > 0 || l.Session.Nanos > 0 || l.Day.Nanos > 0 || l.Run > 0) {
		return &Over{Reach: OfEntry, Figures: withoutPrice(n), Alone: true}
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
	Runs        []string // directories of the babysitter runs that the inbox drives
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

// keep notes, with the next commit, what the settings say that an entry, a session, a day
// and the runs may cost, for those who only look, and for whoever would put back what was
// set aside.
func (s Settings) keep(tx *inbox.Tx) error {
	tx.NoteLimits(s.Limits.Entry, s.Limits.Session, s.Limits.Day)
	for _, dir := range s.Runs {
		id := filepath.Base(dir)
		if r, known := tx.Run(id); !known || r.Limit == s.Limits.Run {
			continue
		}
		if err := tx.NoteRun(id, s.Limits.Run); err != nil {
			return err
		}
	}
	return nil
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
