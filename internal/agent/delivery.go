package agent

import "heartbeat/internal/agent/handed"

// Delivery is a text that a Stop hook handed over.
type Delivery handed.Delivery

// Seen is what a transcript shows of a delivery.
type Seen interface {
	// Answered reports whether it shows an answer after the text. False may become true.
	Answered() bool
	// NextTurn reports whether the model had the text when it next answered.
	NextTurn() handed.Turn
	// Missed reports whether it proves that the text never reached the model.
	Missed() bool
	// Finished reports whether it shows that the text's turn ended in order, and the reply.
	Finished() (reply string, finished bool)
	// Failed reports whether it shows that an error of the API ended the text's turn, of which
	// the client tells no hook; its name and message are as Claude Code has them.
	Failed() (name, message string, failed bool)
	// Woke reports whether it shows that the text woke the session: in the turn with this
	// id, or in any if that is empty.
	Woke(promptID string) bool
}

// Seen asks the transcript.
func (d Delivery) Seen() Seen { return Of(d.Path).seen(d) }
