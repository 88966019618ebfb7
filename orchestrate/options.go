// Package orchestrate drives babysitter runs through an inbox: what a run asks for becomes entries, and the answers
// go back to the run.
//
// A run's process asks for effects and cannot continue without their results. A [Bridge] takes one step at a time. It
// runs the process as far as it gets, makes sure that each effect the process then waits for has exactly one entry in
// the inbox, and posts results that need no agent. The ledger beside the inbox is a cache: it saves work, and nothing
// depends on it. A step may be taken at any time, by any number of processes, and after a crash at any point.
package orchestrate

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/effect"
	"heartbeat/orchestrate/run"
)

// Options say how a run is driven. The ledger keeps them for other processes that take a step, but a process
// permits only what its own options permit: see [OpenDriven].
type Options struct {
	effect.Options
	// AnyCode runs the process however its code has changed since the run was bound. No file can permit that.
	AnyCode bool `json:"-"`

	// follows says that another process drives the run, whose options the ledger keeps. others are the kinds of
	// effects that the other process carries out.
	follows bool
	others  []string
}

// Empty reports whether the ledger kept no options.
func (o Options) Empty() bool { return o.Breakpoints == "" && o.OnUnresolved == "" }

// Bridge connects one run with one inbox.
type Bridge struct {
	Box *inbox.Inbox
	Run *run.Run
	// CLI changes the run. Program is the path of heartbeat, in the command by which the agent hands results over.
	// A step needs both. No file names the CLI, so that nobody who can write beside the inbox chooses what runs.
	CLI     *babysitter.CLI
	Program string
	Options
	// Posts limits how many handed-over results a step posts, and Until is when it stops posting. Zero is no limit.
	Posts int
	Until time.Time
	// Outside leaves the commands of Execute to another process. A step then waits for no other step.
	Outside bool
}

// Report is what a step did, and what the run waits for.
type Report struct {
	Run        string        `json:"run"`
	Dir        string        `json:"run_dir"`
	Status     run.Status    `json:"status"`
	Queued     []string      `json:"queued,omitempty"`     // ids of appended entries
	Waits      int           `json:"waits,omitempty"`      // effects with an earlier entry
	Posted     []string      `json:"posted,omitempty"`     // effects that got a result
	Unposted   int           `json:"unposted,omitempty"`   // results left for another step
	Notes      []string      `json:"notes,omitempty"`      // on what was appended
	Refused    []string      `json:"refused,omitempty"`    // results, and why
	Busy       bool          `json:"busy,omitempty"`       // another process takes a step
	Commands   []string      `json:"commands,omitempty"`   // effects that another process runs
	Longest    time.Duration `json:"-"`                    // the longest time limit of those
	Held       []Held        `json:"held,omitempty"`       // effects for a person
	NotBefore  *time.Time    `json:"not_before,omitempty"` // when the next sleep ends
	Iterations int           `json:"iterations,omitempty"`
	Done       bool          `json:"done,omitempty"`         // completed, and proven or closed by hand
	Guard      string        `json:"guard,omitempty"`        // why this run is driven no more
	OutOfSteps bool          `json:"out_of_steps,omitempty"` // a greater --max-iterations lets it continue
	Rests      bool          `json:"rests,omitempty"`        // until a person accepts its code
}

// Held is an effect that waits for a person.
type Held struct {
	Effect   string    `json:"effect"`
	Label    string    `json:"label,omitempty"`
	Question string    `json:"question,omitempty"` // of a breakpoint
	Reason   string    `json:"reason,omitempty"`
	Since    time.Time `json:"since"`
}

// OpenAll opens the runs that the flags of a command name. It returns those that can be opened even with an error.
func OpenAll(ctx context.Context, r *cli.RunFlags, box *inbox.Inbox, note func(string, ...any)) (all []*Bridge, err error) {
	for _, dir := range r.Dirs {
		b, unable := Open(ctx, r, box, dir, note)
		if unable != nil {
			err = errors.Join(err, unable)
			continue
		}
		all = append(all, b)
	}
	return all, err
}

// Open opens the bridge of the run in a directory, and binds a new run to its code.
func Open(ctx context.Context, r *cli.RunFlags, box *inbox.Inbox, dir string, note func(string, ...any)) (*Bridge, error) {
	b, err := OpenDriven(r, box, dir, Options{}, note)
	if err == nil {
		b.Bind(ctx)
	}
	return b, err
}

// OpenDriven opens the bridge of a run that another process may drive, with the options that the ledger kept. It does not
// bind the run.
func OpenDriven(r *cli.RunFlags, box *inbox.Inbox, dir string, kept Options, note func(string, ...any)) (*Bridge, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	opened, err := run.Open(dir)
	if err != nil {
		return nil, err
	}
	program, err := cli.Beside("heartbeat")
	if err != nil {
		return nil, err
	}
	options := Options{Options: r.Options, AnyCode: r.CodeChanges == "allow"}
	if own := options; !kept.Empty() {
		// What they permit comes from own alone, since an agent's tools can write the ledger.
		options = kept
		options.Breakpoints, options.Execute, options.AnyCode = own.Breakpoints, own.Execute, own.AnyCode
		options.follows, options.others = true, kept.Execute
	}
	return &Bridge{
		Box: box, Run: opened, Program: program, CLI: &babysitter.CLI{Command: r.Command, Note: note}, Options: options,
	}, nil
}
