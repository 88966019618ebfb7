package orchestrate

import (
	"context"
	"time"

	"heartbeat/inbox"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/effect"
	"heartbeat/orchestrate/run"
)

// Writer is what changes runs; it is babysitter's own command.
type Writer interface {
	Iterate(ctx context.Context, runDir string) (babysitter.Iteration, error)
	PostOK(ctx context.Context, runDir, effectID string, value []byte, with babysitter.Attachments) error
	PostError(ctx context.Context, runDir, effectID string, failure babysitter.Failure, with babysitter.Attachments) error
}

// Options say how a run is driven. They are kept in its ledger, for who takes a step
// besides. What they allow counts only from who takes the step: see [Options.Following].
type Options struct {
	// Command is how babysitter is called. It stands in no file beside an inbox, and
	// so comes from whoever takes the step.
	Command      []string           `json:"-"`
	Breakpoints  effect.Breakpoints `json:"breakpoints,omitempty"` // [effect.Hold] if empty
	RejectReason string             `json:"reject_reason,omitempty"`
	OnUnresolved effect.Unresolved  `json:"on_unresolved,omitempty"` // [effect.Leave] if empty
	// Execute are the kinds of effects that the step itself carries out: node and
	// shell are possible.
	Execute []string `json:"execute,omitempty"`
	// MaxAttempts bounds how often a failed run is tried again, and a proof asked for;
	// 3 if 0.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// MaxSteps bounds how often the process is run, 0 for not at all.
	MaxSteps int `json:"max_steps,omitempty"`
	// MaxIdle is how often in a row the process may be run without the run getting
	// on, before the bridge gives up on it; 0 is never.
	MaxIdle int `json:"max_idle,omitempty"`

	// beside is that the ledger keeps how others drive the run, and others the kinds of
	// effects that they carry out.
	beside bool
	others []string
}

// Empty reports whether nothing was kept.
func (o Options) Empty() bool { return o.Breakpoints == "" && o.OnUnresolved == "" }

// Following is how a step is taken beside those of whom the ledger tells: as they do,
// but for what o alone may allow, since an agent's tools can write the ledger.
func (o Options) Following(kept Options) Options {
	if kept.Empty() {
		return o
	}
	kept.Command, kept.Breakpoints, kept.Execute, kept.others = o.Command, o.Breakpoints, o.Execute, kept.Execute
	kept.beside = true
	return kept
}

// Bridge carries what one run asks for to one inbox.
type Bridge struct {
	Box *inbox.Inbox
	Run *run.Run
	CLI Writer
	Options
	// Program is what the agent is told to hand results over with; heartbeat if empty.
	Program string
	// Posts bounds how many results that were handed over one step posts, and Until how
	// late it posts another; neither does if zero.
	Posts int
	Until time.Time
	// Outside leaves the commands of Execute to another process, and does not wait for
	// one that takes a step.
	Outside bool
	Now     func() time.Time // time.Now if nil
}

func (b *Bridge) now() time.Time {
	if b.Now != nil {
		return b.Now()
	}
	return time.Now()
}

// Report says what a step came to.
type Report struct {
	Run    string     `json:"run"`
	Dir    string     `json:"run_dir"`
	Status run.Status `json:"status"`
	// Queued are the ids of the entries that were appended just now, and Waits how
	// many effects have one already.
	Queued []string `json:"queued,omitempty"`
	Waits  int      `json:"waits,omitempty"`
	// Posted are the effects that got a result just now.
	Posted []string `json:"posted,omitempty"`
	// Unposted is how many results are left to be posted: another step is to follow.
	Unposted int `json:"unposted,omitempty"`
	// Notes are sentences for a person about what was queued.
	Notes []string `json:"notes,omitempty"`
	// Refused says which results were not posted, and why.
	Refused []string `json:"refused,omitempty"`
	// Busy says that another process takes a step just now, and nothing was done.
	Busy bool `json:"busy,omitempty"`
	// Commands are the effects whose commands are left to another process, and Longest
	// is the most that one of them may take.
	Commands []string      `json:"commands,omitempty"`
	Longest  time.Duration `json:"-"`
	// Held are the effects that wait for a person.
	Held []Held `json:"held,omitempty"`
	// NotBefore is when the next sleep is over, where nothing else is to be done.
	NotBefore *time.Time `json:"not_before,omitempty"`
	// Iterations is how often the process was run by way of this inbox.
	Iterations int `json:"iterations,omitempty"`
	// Done says that the run is completed and its proof was given.
	Done bool `json:"done,omitempty"`
	// Guard is why the bridge goes no further with this run, "" if it does. OutOfSteps
	// says that the reason is [Options.MaxSteps]: a greater one lets the run continue.
	Guard      string `json:"guard,omitempty"`
	OutOfSteps bool   `json:"out_of_steps,omitempty"`
}

// Held is an effect that waits for a person.
type Held struct {
	Effect   string    `json:"effect"`
	Label    string    `json:"label,omitempty"`
	Question string    `json:"question,omitempty"` // of a breakpoint
	Reason   string    `json:"reason,omitempty"`   // of anything else
	Since    time.Time `json:"since"`
}
