// Package agent is the one place that knows which client a hook serves: Claude Code or OpenAI's Codex. All other code
// asks an [Agent], and never which one it is.
//
// A third client takes a package beside internal/claude and internal/codex that answers these questions, and a row in the
// table of this package.
package agent

import (
	"slices"
	"time"

	"heartbeat/internal/agent/handed"
	"heartbeat/internal/claude"
	"heartbeat/internal/codex"
	"heartbeat/internal/flat"
)

// Agent describes a client.
type Agent struct {
	Name  string               // what people call it
	Begin []string             // the command line of a session that asks for an entry; the program comes first
	PID   func(parent int) int // returns the client's process id, or 0, for a hook with this parent
	// CannotBeWoken returns why a hook in the background cannot begin another turn of its session, "" if it can.
	CannotBeWoken func() string
	// LogsHooks says that the transcript shows the decision of each hook of a Stop soon after that hook ended.
	LogsHooks bool
	// MaxReason is the longest text, in bytes, that arrives whole when a Stop hook blocks with it; 0 for any length.
	MaxReason int

	// HasReply reports whether a transcript has a reply between two offsets, and all lines that show what the reply's
	// request cost.
	HasReply func(transcript string, from, to int64, reply string) bool
	// IsToolRunning reports whether a transcript of that size ends while a tool runs that the model asked for.
	IsToolRunning func(transcript string, size int64) bool
	// Interrupted reports whether a transcript shows, from an offset on, that a person ended this prompt's turn.
	Interrupted func(transcript, promptID string, from int64) bool

	// LastFailed reports whether a transcript shows that an API error has just ended the session's last turn, as
	// [Seen.Failed] does for a text's turn. It is nil for a client that reports such errors to a hook.
	LastFailed func(transcript string) (name, message string, failed bool)

	ownsTranscript func(transcript string) bool // reports whether a transcript of this name is the client's
	isProgram      func(program string) bool    // reports whether a process of this name is the client
	seen           func(Delivery) Seen
}

// all lists the clients. The last one owns every transcript.
var all = []*Agent{
	{
		Name: "Codex", Begin: []string{codex.Command, "exec", "Say ready."}, PID: codex.PID, MaxReason: codex.MaxReason,
		CannotBeWoken: func() string { return noBackground },
		HasReply:      codex.HasReply, IsToolRunning: codex.IsToolRunning, LastFailed: codex.LastFailed,
		Interrupted:    func(string, string, int64) bool { return false },
		ownsTranscript: codex.IsRollout, isProgram: codex.IsName,
		seen: func(d Delivery) Seen { return codex.Delivery(d) },
	},
	{
		Name: "Claude Code", Begin: []string{claude.Command, "Say ready."}, PID: func(int) int { return claude.PID() },
		CannotBeWoken: endsWithTurn, LogsHooks: true,
		HasReply: claude.HasReply, IsToolRunning: claude.IsToolRunning, Interrupted: claude.Interrupted,
		ownsTranscript: func(string) bool { return true },
		isProgram:      func(program string) bool { return program == claude.Command },
		seen:           func(d Delivery) Seen { return claude.Delivery(d) },
	},
}

const noBackground = "Codex runs no hooks in the background: wire it without --rewake"

// endsWithTurn is CannotBeWoken of Claude Code.
func endsWithTurn() string {
	if claude.CanBeWoken() {
		return ""
	}
	return "this one ends with its turn (under -p, or driven by a program): wire it without --rewake"
}

// CanBeWoken reports whether a hook in the background can begin another turn of its session.
func (a *Agent) CanBeWoken() bool { return a.CannotBeWoken() == "" }

// ForTranscript returns the client that writes a transcript. Every hook's input names its transcript.
func ForTranscript(transcript string) *Agent {
	return all[slices.IndexFunc(all, func(a *Agent) bool { return a.ownsTranscript(transcript) })]
}

// IsProgram reports whether a process of this name is a client.
func IsProgram(name string) bool {
	return slices.ContainsFunc(all, func(a *Agent) bool { return a.isProgram(name) })
}

// Delivery is a text that a Stop hook handed over.
type Delivery handed.Delivery

// Seen is what a transcript shows of a delivery.
type Seen interface {
	// Answered reports whether an answer follows the text. False may become true.
	Answered() bool
	// Silent reports whether the model's last answer was empty, so that a Stop names an earlier reply.
	Silent() bool
	// NextTurn reports whether the model had the text when it next answered.
	NextTurn() handed.Turn
	// Missed reports whether the transcript proves that the text never reached the model.
	Missed() bool
	// Finished reports whether the text's turn ended in order, and returns the reply.
	Finished() (reply string, finished bool)
	// Failed reports whether an API error ended the text's turn that the client reports to no hook. name and message are
	// in Claude Code's terms; at is zero if unknown.
	Failed() (at time.Time, name, message string, failed bool)
}

// Seen returns what the transcript shows of the delivery.
func (d Delivery) Seen() Seen { return ForTranscript(d.Path).seen(d) }

// StartNote returns the note for a session's start: where in the transcript the lines of this process begin, and whether
// no launcher started it (outside).
func StartNote(transcript string, outside bool) []byte {
	var o flat.Object
	o.Text("transcript_path", transcript)
	o.Int("transcript_size", claude.TranscriptSize(transcript))
	o.Bool("outside", outside)
	return o.End()
}

// StartOf returns the transcript that a hook named at the session's start, and its size then in bytes; "" if no hook
// named one. outside is not in notes of earlier releases.
func StartOf(note []byte) (transcript string, size int64, outside bool) {
	m, err := flat.Parse(note)
	if err != nil {
		return "", 0, false
	}
	return m.String("transcript_path"), m.Int("transcript_size"), m.Bool("outside")
}
