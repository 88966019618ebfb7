package session

import (
	"time"

	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/notify"
	recovery "heartbeat/recover"
)

// StallAction is what happens to a session that makes no progress.
type StallAction string

const (
	ReportStall StallAction = "report" // a warning in status and report
	CancelStall StallAction = "cancel" // also the client's end
)

// Options say how a session is hosted: see [Defaults].
type Options struct {
	Config *config.Config
	Claude string // the client: a path, or a name in PATH; "claude" if empty
	Hook   string // the absolute path of heartbeat-stop
	Inbox  string // the queue that the session works through, "" for one of its own
	recovery.Settings
	Resume      bool           // continue a session that was hosted before; otherwise its ID is refused
	Grace       time.Duration  // the client's time from SIGTERM to SIGKILL
	ExitTimeout time.Duration  // the client's time to exit after its result
	Timeout     time.Duration  // for all rounds together; 0 is none
	Notify      notify.Options // how a person is notified; without a command nobody is
	// Stall is after how long without progress a session counts as stalled, 0 for never. StallAction happens then.
	Stall       time.Duration
	StallAction StallAction
	MemoryMax   int64         // the most data of each process, in bytes; 0 is no limit
	Again       time.Duration // the time between a guardian's attempts to send what is left
	// RequireTools fails a session all of whose tool calls to the guild failed, or whose client never
	// asked for the tools. The config may also demand that.
	RequireTools bool
	Beat         time.Duration // the time between two heartbeats to the guild
	// PTY hosts an interactive session. When it asks something, it waits AskPatience for somebody to attach and answer.
	PTY         bool
	AskPatience time.Duration
	// Detached sends all output of this process to the session's log. A session without a log then does not begin.
	Detached bool
	Started  func(Up) `json:"-"` // if set, called once, when the session is up
}

// Defaults returns the usual options.
func Defaults() Options {
	return Options{
		Settings: recovery.Settings{Policy: recovery.DeadLetter, MaxAttempts: recovery.DefaultMaxAttempts},
		Config:   &config.Config{}, Grace: 10 * time.Second, ExitTimeout: 30 * time.Second, Stall: 20 * time.Minute, StallAction: ReportStall,
		Again: 20 * time.Second, Beat: guild.BeatEvery,
	}
}

// Up is what the caller of a session learns once it is up.
type Up struct {
	SessionID string `json:"sessionId"`
	PID       int    `json:"pid"`
	PGID      int    `json:"pgid"`
	Socket    string `json:"socket"`
}

// Outcome is what became of a session.
type Outcome struct {
	Decision
	// Delivered means that the guild has the terminal report, which otherwise is in the host's database and a file.
	Delivered bool
	Broken    error // what kept the host from its work, nil for nothing
	// Left means that the guild or its table lacks something that a later [Finish] may send.
	Left bool
}
