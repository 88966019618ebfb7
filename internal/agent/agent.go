// Package agent is the one place where it is told which client a hook serves: Claude Code or
// OpenAI's Codex. Everything else asks an [Agent], and never which one it is.
//
// A third client is a package beside internal/claude and internal/codex that answers these
// questions, and a row in the table of this package.
package agent

import (
	"slices"

	"heartbeat/internal/agent/handed"
	"heartbeat/internal/claude"
	"heartbeat/internal/codex"
	"heartbeat/internal/flat"
)

// Agent is what there is to know of a client.
type Agent struct {
	Name  string   // what people call it
	Begin []string // its program, and what has a session of it ask for an entry
	// PID is the client's process, as it is found from a hook whose parent is given, or 0.
	PID func(parent int) int
	// CannotBeWoken says why a hook in the background cannot begin another turn of the
	// session around this hook, "" if it can.
	CannotBeWoken func() string
	// TellsOfHooks says that its transcript has what each hook of a Stop said, soon after that
	// one has ended.
	TellsOfHooks bool
	// MaxReason is how long a text may be, in bytes, that a Stop hook blocks with, so that it
	// arrives whole; 0 for any length.
	MaxReason int

	// Said reports whether a transcript has a reply between two offsets, and all that tells what
	// the request with it took.
	Said func(transcript string, from, to int64, reply string) bool

	// ToolRuns reports whether a transcript of that size ends while a tool runs that the model
	// asked for.
	ToolRuns func(transcript string, size int64) bool

	// owns reports whether a transcript of this name is the client's.
	owns func(transcript string) bool
	seen func(Delivery) Seen
}

// all are the clients; the last one owns every transcript that none before it does.
var all = []*Agent{
	{
		Name: "Codex", PID: codex.PID, CannotBeWoken: func() string { return noBackground }, MaxReason: codex.MaxReason, Said: codex.Said, ToolRuns: codex.ToolRuns,
		Begin: []string{codex.Command, "exec", "Say ready."}, owns: codex.IsRollout, seen: func(d Delivery) Seen { return codex.Delivery(d) },
	},
	{
		Name: "Claude Code", PID: func(int) int { return claude.PID() }, CannotBeWoken: printing, TellsOfHooks: true, Said: claude.Said, ToolRuns: claude.ToolRuns,
		Begin: []string{claude.Command, "Say ready."}, owns: func(string) bool { return true }, seen: func(d Delivery) Seen { return claude.Delivery(d) },
	},
}

const (
	noBackground = "Codex runs no hooks in the background: wire it without --rewake"
	endsWithTurn = "this one ends with its turn (under -p, or driven by a program): wire it without --rewake"
)

func printing() string {
	if claude.CanBeWoken() {
		return ""
	}
	return endsWithTurn
}

// CanBeWoken reports whether a hook in the background can begin another turn of the session
// around this hook.
func (a *Agent) CanBeWoken() bool { return a.CannotBeWoken() == "" }

// Of is the client that writes a transcript; that name is in the input of each of its hooks.
func Of(transcript string) *Agent {
	for _, a := range all {
		if a.owns(transcript) {
			return a
		}
	}
	return all[len(all)-1]
}

// IsProgram reports whether a process of this name is a client.
func IsProgram(name string) bool {
	return slices.ContainsFunc(all, func(a *Agent) bool { return a.Begin[0] == name })
}

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

// StartNote is kept with a session's start: where in its transcript the lines of this
// process begin.
func StartNote(transcript string) []byte {
	var o flat.Object
	o.Text("transcript_path", transcript)
	o.Int("transcript_size", claude.TranscriptSize(transcript))
	return o.End()
}

// StartOf is the transcript that a hook named at the session's start, and how long it was
// then, in bytes; "" if no hook told of that.
func StartOf(note []byte) (transcript string, size int64) {
	m, err := flat.Parse(note)
	if err != nil {
		return "", 0
	}
	return m.String("transcript_path"), m.Int("transcript_size")
}
