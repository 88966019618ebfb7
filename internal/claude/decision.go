package claude

import (
	"io"

	"heartbeat/internal/flat"
)

// Form is how a Stop hook hands a text over.
type Form string

// The forms.
const (
	AsReason  Form = "reason"  // a block with a reason, which arrives whole
	AsContext Form = "context" // additional context, for short texts
)

// maxContext is how many characters (UTF-16 units) of additional context the
// client passes on; the rest would go to a file.
const maxContext = 10_000

// WriteBlock prints the decision that goes on with text as the next turn, in
// one write. A text too long for context is handed over as a reason. An error
// means that the client got no decision: what is cut off is not JSON. The client shows
// message to the person at the terminal, unless it is empty.
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
	decision := o.End()
	n, err := w.Write(append(decision, '\n'))
	switch {
	case n >= len(decision):
		return nil // the newline is for people
	case err == nil:
		return io.ErrShortWrite
	}
	return err
}
