package agent

import (
	"heartbeat/internal/claude"
	"heartbeat/internal/codex"
)

// Delivery is a text that a Stop hook handed over, and what is needed to find its
// fate in the transcript. Times in the transcript are never used: they come from a
// clock that may be wrong.
type Delivery struct {
	Path string // of the session's transcript
	Size int64  // of the transcript when the text was handed over
	// End is the offset where another process, which resumed the session, began
	// to write, or 0.
	End      int64
	Text     string
	PromptID string // of the prompt that the Stop ended, empty if unknown
	// Reply is the hash of the assistant's last text at the delivery. Fresh says that it
	// differs from the one at the Stop before.
	Reply string
	Fresh bool
	// Times is how often this same text was handed over since offset From,
	// including this time. Below 2, From is not used.
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

// Seen is what a transcript shows of a delivery.
type Seen interface {
	// Answered reports whether it shows an answer after the text. False may become true.
	Answered() bool
	// NextTurn reports whether the model had the text when it next answered.
	NextTurn() Turn
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

type ofClaude struct{ claude.Delivery }

func (c ofClaude) NextTurn() Turn { return Turn(c.Delivery.NextTurn()) }

// Failed is false: the client tells a hook.
func (ofClaude) Failed() (name, message string, failed bool) { return "", "", false }

type ofCodex struct{ codex.Delivery }

func (c ofCodex) NextTurn() Turn { return Turn(c.Delivery.NextTurn()) }
