// Package agent is the one place where it is told which client a hook serves: Claude Code or
// OpenAI's Codex. Everything else asks an [Agent], and never which one it is.
//
// A third client is a package beside internal/claude and internal/codex that answers these
// questions, and a row in the table of this package.
package agent

import (
	"slices"

	"heartbeat/internal/claude"
	"heartbeat/internal/codex"
)

// Agent is what there is to know of a client.
type Agent struct {
	Name string // what people call it
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

	program string // its file's name
	// owns reports whether a transcript of this name is the client's.
	owns func(transcript string) bool
	seen func(Delivery) Seen
}

// all are the clients; the last one owns every transcript that none before it does.
var all = []*Agent{
	{
		Name: "Codex", program: codex.Command, PID: codex.PID, CannotBeWoken: func() string { return noBackground }, MaxReason: codex.MaxReason, Said: codex.Said,
		owns: codex.IsRollout, seen: func(d Delivery) Seen { return codex.Delivery(d) },
	},
	{
		Name: "Claude Code", program: claude.Command, PID: func(int) int { return claude.PID() }, CannotBeWoken: printing, TellsOfHooks: true, Said: claude.Said,
		owns: func(string) bool { return true }, seen: func(d Delivery) Seen { return claude.Delivery(d) },
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
	return slices.ContainsFunc(all, func(a *Agent) bool { return a.program == name })
}
