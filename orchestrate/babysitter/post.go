package babysitter

import (
	"context"
	"encoding/json"
	"time"
)

// Attachments go with a result. All of it may be left empty.
type Attachments struct {
	// Stdout and Stderr are files whose content is copied into the run, as text.
	Stdout, Stderr string
	// StartedAt and FinishedAt are when the task was worked on; zero is now.
	StartedAt, FinishedAt time.Time
}

// Failure is an error as runs hold it. The process that awaits the task catches it
// with these members.
type Failure struct {
	Name    string          `json:"name"` // empty is Error
	Message string          `json:"message"`
	Stack   string          `json:"stack,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"` // any JSON, or nothing
}

// PostOK gives the effect its result, any JSON value. The CLI does not look
// whether it is what the process expects. An effect has one result: where it had one
// already, the error is [ErrResolved].
//
// Where the CLI does not say whether it took the result, the run is asked, and the
// result posted again where it is not there.
func (c *CLI) PostOK(ctx context.Context, runDir, effectID string, value []byte, with Attachments) error {
	panic("todo")
}

// PostError gives the effect a failure for a result, which the process may catch;
// where it does not, the next iteration fails. In everything else it is PostOK.
func (c *CLI) PostError(ctx context.Context, runDir, effectID string, failure Failure, with Attachments) error {
	panic("todo")
}
