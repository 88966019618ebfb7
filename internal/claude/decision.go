package claude

import (
	"io"

	"heartbeat/internal/flat"
)

// Form is how a Stop hook hands a text to the client.
type Form string

// The forms of a decision.
const (
	AsReason  Form = "reason"  // the reason of a block, which arrives whole at any length
	AsContext Form = "context" // additional context, which the client shortens
)

// maxContext is how many UTF-16 units of additional context the client passes to the model. It writes the rest to a
// file.
const maxContext = 10_000

// WriteBlock prints, in one write, the decision that makes text the session's next turn. A text too long for context goes
// as a reason. The client shows message at the terminal unless it is empty. After an error the client has no decision,
// because a truncated one is not JSON.
func WriteBlock(w io.Writer, text string, form Form, message string) error {
	var o flat.Object
	if form == AsContext && fits(text, maxContext) {
		var output flat.Object
		output.String("hookEventName", EventStop)
		output.String("additionalContext", text)
		o.Raw("hookSpecificOutput", output.End())
	} else {
		o.String("decision", "block")
		o.String("reason", text)
	}
	if message != "" {
		o.String("systemMessage", message)
	}
	return write(w, &o)
}

// WriteMessage prints, in one write, what the client shows at the terminal.
func WriteMessage(w io.Writer, message string) error {
	var o flat.Object
	o.String("systemMessage", message)
	return write(w, &o)
}

func write(w io.Writer, o *flat.Object) error {
	decision := o.End()
	n, err := w.Write(append(decision, '\n'))
	switch {
	case n >= len(decision):
		return nil // only the newline is missing, and the client needs none
	case err == nil:
		return io.ErrShortWrite
	}
	return err
}

// WriteStop prints, in one write, the decision that ends the turn at once. The client shows why, and sends the model no
// further request. Neither Stop nor StopFailure follows.
func WriteStop(w io.Writer, why string) error {
	var o flat.Object
	o.Bool("continue", false)
	o.String("stopReason", why)
	return write(w, &o)
}
