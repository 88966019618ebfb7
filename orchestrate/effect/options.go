package effect

import (
	"fmt"
	"strings"
)

// Breakpoints says what happens to a run's question to a person.
type Breakpoints string

const (
	// Ask has the agent ask its person.
	Ask Breakpoints = "ask"
	// Hold waits until somebody answers the question.
	Hold Breakpoints = "hold"
	// Reject answers that it was not approved.
	Reject Breakpoints = "reject"
)

// Unresolved says what happens to an effect whose entry was set aside.
type Unresolved string

const (
	// PostError tells the process, which may catch the error.
	PostError Unresolved = "post-error"
	// Leave waits for a person, who requeues the dead letter or posts a result.
	Leave Unresolved = "hold"
)

// Kinds of effects that a step can carry out itself, without the agent.
const (
	Node  = "node"
	Shell = "shell"
)

// Defaults for the options of a run.
const (
	DefaultBreakpoints  = Hold
	DefaultUnresolved   = Leave
	DefaultRejectReason = "nobody is there to approve it"
	DefaultMaxSteps     = 256 // times that the process is run
)

// CheckExecute returns an error that names the kinds which a step cannot carry out.
func CheckExecute(kinds []string) error {
	var unknown []string
	for _, kind := range kinds {
		if kind != Node && kind != Shell {
			unknown = append(unknown, fmt.Sprintf("%q", kind))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("only %s and %s can be carried out here, not %s", Node, Shell, strings.Join(unknown, ", "))
}
