package orchestrate

import (
	"context"
	"time"

	"heartbeat/inbox"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/run"
)

// Breakpoints says what becomes of a question to a person.
type Breakpoints string

// The ways.
const (
	// Ask has the agent ask its person.
	Ask Breakpoints = "ask"
	// Hold waits until somebody answers it by [Bridge.Answer].
	Hold Breakpoints = "hold"
	// Reject answers that it was not approved.
	Reject Breakpoints = "reject"
)

// Unresolved says what becomes of an effect whose entry was set aside.
type Unresolved string

// The ways.
const (
	// PostError tells the process, which may catch it.
	PostError Unresolved = "post-error"
	// Leave waits for a person, who requeues the dead letter or posts a result.
	Leave Unresolved = "hold"
)

// Writer is what changes runs; it is babysitter's own command.
type Writer interface {
	Iterate(ctx context.Context, runDir string) (babysitter.Iteration, error)
	PostOK(ctx context.Context, runDir, effectID string, value []byte, with babysitter.Attachments) error
	PostError(ctx context.Context, runDir, effectID string, failure babysitter.Failure, with babysitter.Attachments) error
}

// What holds where nobody says otherwise.
const (
	DefaultMaxSteps     = 256
	DefaultMaxIdle      = 10
	DefaultRejectReason = "nobody is there to approve it"
)

// Options say how a run is driven. They are kept in its ledger, so that whoever
// takes a step besides does it likewise.
type Options struct {
	// Command is how babysitter is called.
	Command      []string    `json:"command,omitempty"`
	Breakpoints  Breakpoints `json:"breakpoints,omitempty"` // Hold if empty
	RejectReason string      `json:"reject_reason,omitempty"`
	OnUnresolved Unresolved  `json:"on_unresolved,omitempty"` // PostError if empty
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
}

// Bridge carries what one run asks for to one inbox.
type Bridge struct {
	Box *inbox.Inbox
	Run *run.Run
	CLI Writer
	Options
	// Program is what the agent is told to hand results over with; heartbeat-stop if
	// empty.
	Program string
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
	// Held are the effects that wait for a person.
	Held []Held `json:"held,omitempty"`
	// NotBefore is when the next sleep is over, where nothing else is to be done.
	NotBefore *time.Time `json:"not_before,omitempty"`
	// Done says that the run is completed and its proof was given.
	Done bool `json:"done,omitempty"`
	// Guard is why the bridge goes no further with this run, "" if it does.
	Guard string `json:"guard,omitempty"`
}

// Held is an effect that waits for a person.
type Held struct {
	Effect   string    `json:"effect"`
	Label    string    `json:"label,omitempty"`
	Question string    `json:"question,omitempty"` // of a breakpoint
	Reason   string    `json:"reason,omitempty"`   // of anything else
	Since    time.Time `json:"since"`
}
