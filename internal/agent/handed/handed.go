// Package handed has what is known of a text that a Stop hook handed to a client. Each
// client's package looks for its fate in the transcripts that it knows.
package handed

// Delivery is a text that a Stop hook handed over, and what is needed to find its fate in
// the transcript. Times in the transcript are never used: they come from a clock that may be
// wrong.
type Delivery struct {
	Path string // of the session's transcript, a JSONL file
	Size int64  // of the transcript when the text was handed over
	// End is the offset where another process, which resumed the session, began to write,
	// or 0. Its lines do not show what the killed process sent, but its turns send
	// everything before them to the model.
	End      int64
	Text     string
	PromptID string // of the turn that the Stop ended, empty if unknown
	// Reply is the hash of the assistant's last text at the delivery. Fresh says that it
	// differs from the one at the Stop before, so that its line in the transcript can be
	// told from older ones. A client whose lines name their turn needs neither.
	Reply string
	Fresh bool
	// Times is how often this same text was handed over since offset From, including this
	// time. Below 2, From is not used.
	From  int64
	Times int
}

// Turn is what a transcript shows of the turn after a delivery.
type Turn int

// The turns. Unknown may become another one while the client still writes.
const (
	Unknown     Turn = iota
	WithText         // the model answered with the text in its conversation
	WithoutText      // the model answered without it
)
