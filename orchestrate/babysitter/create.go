package babysitter

import "context"

// CreateOptions are what a run is made of.
type CreateOptions struct {
	ProcessID string
	// Entry is the process module, and which of its exports is the process:
	// PATH#EXPORT. Without the latter it is process, never the default export.
	Entry string
	// Inputs of the process, any JSON value; nil is none.
	Inputs []byte
	// RunID is letters, digits and . _ -; empty draws one.
	RunID string
	// Prompt is kept with the run, for people. The CLI takes it as an argument only, which
	// other users of the machine can see.
	Prompt string
	// RunsDir is the folder to make the run in; empty is .a5c/runs.
	RunsDir string
	// NonInteractive has the CLI approve every breakpoint by itself.
	NonInteractive bool
}

// Created is a new run.
type Created struct {
	RunID  string
	RunDir string // absolute
}

// Create makes a run. It loads the process module, but runs no process. A run that
// is there already is refused ([ErrExists]): the CLI would write over it. Where an error
// leaves a folder behind, the sentence names it.
func (c *CLI) Create(ctx context.Context, options CreateOptions) (Created, error) { panic("todo") }
