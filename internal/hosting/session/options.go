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

// The actions.
const (
	ReportStall StallAction = "report" // status and report say so
	CancelStall StallAction = "cancel" // the client is also ended
)

// Options say how a session is hosted: see [Defaults].
type Options struct {
	Config *config.Config
	// Claude is the client: a path, or a name to look up in PATH; "claude" if empty.
	Claude string
	// Hook is the absolute path of heartbeat-stop.
	Hook string
	// Inbox is the queue that the session works through, "" for one of its own.
	Inbox string
	// Settings say what becomes of entries and what they may cost.
	recovery.Settings
	// Resume continues a session that was hosted before; otherwise its ID is refused.
	Resume bool
	// Grace is the client's time from SIGTERM to SIGKILL.
	Grace time.Duration
	// ExitTimeout is how long the client has to exit after its result.
	ExitTimeout time.Duration
	// Timeout is the limit for all rounds together; 0 is none.
	Timeout time.Duration
	// Notify says how to notify a person; without a command nobody is notified.
	Notify notify.Options
	// Stall is how long without progress makes a session count as stalled; 0 is never. StallAction
	// is what happens then.
	Stall       time.Duration
	StallAction StallAction
	// MemoryMax limits the data of each process of the session, in bytes; 0 is no limit.
	MemoryMax int64
	// Again is the time between a guardian's attempts to send what is left.
	Again time.Duration
	// RequireTools fails a session all of whose tool calls to the guild failed, or whose client
	// never asked for the tools. The config may say so too.
	RequireTools bool
	// Beat is the time between two heartbeats to the guild.
	Beat time.Duration
	// PTY hosts an interactive session. When it asks something, it waits AskPatience for somebody to attach and answer.
	PTY         bool
	AskPatience time.Duration
	// Detached says that all output of this process goes to the session's log, without which there is no session.
	Detached bool
	// Started, if set, is called once, when the session is up.
	Started func(Up) `json:"-"`
}

// Defaults are the usual options.
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
	// Delivered says that the guild has the terminal report. If not, the host's database keeps it,
	// and a file beside the guild's.
	Delivered bool
	// Broken is what kept the host from its work, nil for nothing.
	Broken error
	// Left says that the guild or its table lacks something that a later [Finish] may send.
	Left bool
}
