package recover

import (
	"path/filepath"

	"heartbeat/inbox"
	"heartbeat/internal/budget"
	"heartbeat/internal/host"
	"heartbeat/orchestrate/effect"
)

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
	if o := OwnerOf(tx, d); o.Life == host.Alive && o.PID != a.Client.PID {
		return &o
	}
	return nil
}
