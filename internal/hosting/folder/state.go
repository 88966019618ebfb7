package folder

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Status is how far a session has come.
type Status string

// The states of a session. Dead is never written: it means that a session has not ended and its host does not live.
const (
	Pending     Status = "pending"
	Running     Status = "running"
	Completed   Status = "completed"
	Failed      Status = "failed"
	Cancelled   Status = "cancelled"
	RateLimited Status = "rate-limited"
	Timeout     Status = "timeout"
	Dead        Status = "dead"
)

// Ended reports whether this status is an end, which never changes.
func (s Status) Ended() bool {
	return slices.Contains([]Status{Completed, Failed, Cancelled, RateLimited, Timeout}, s)
}

// known reports whether a record may have this status.
func (s Status) known() bool { return s.Ended() || s == Pending || s == Running }

// State is the record of a session: what status shows, and what a process needs to finish the
// session of a killed host. It never holds the session's environment or a token. Times are UTC.
type State struct {
	Config
	Facts
	Outcome
}

// Config is what a host was asked for. It does not change while the host lives.
type Config struct {
	Version            int                        `json:"version"` // [Version]
	Release            string                     `json:"release,omitempty"`
	SessionID          string                     `json:"sessionId"`
	GuildToolURL       string                     `json:"guildToolUrl"`
	DB                 string                     `json:"dbPath"`
	LogPath            string                     `json:"logPath"`
	Cwd                string                     `json:"cwd"`
	Provider           string                     `json:"provider"`
	StartedAt          string                     `json:"startedAt"` // as the config spells it
	Metadata           json.RawMessage            `json:"metadata,omitempty"`
	SystemPromptTmpDir string                     `json:"systemPromptTmpDir,omitempty"`
	Extra              map[string]json.RawMessage `json:"extra,omitempty"` // the config's unknown keys
	Inbox              string                     `json:"inbox"`
	OwnInbox           bool                       `json:"ownInbox,omitempty"` // it lies in the session's folder
	OnOrphan           string                     `json:"onOrphan,omitempty"` // the policy for an entry without an answer
	MaxAttempts        int                        `json:"maxAttempts,omitempty"`
	Limits             []string                   `json:"limits,omitempty"` // what it may cost, as flags
	PTY                bool                       `json:"pty,omitempty"`
	HostedAt           time.Time                  `json:"hostedAt"` // when this host began
}

// Facts are how the session is hosted and how it goes.
type Facts struct {
	Mark           string     `json:"mark,omitempty"` // HEARTBEAT_SESSION in all its processes
	Host           *Process   `json:"host,omitempty"` // nil once everything is done for the session
	PGID           int        `json:"pgid,omitempty"` // the host's process group, the cancel handle
	Client         *Process   `json:"client,omitempty"`
	Guardian       *Process   `json:"guardian,omitempty"`
	Socket         string     `json:"socket,omitempty"`
	Before         *Before    `json:"before,omitempty"` // of a given inbox
	Rounds         int        `json:"rounds,omitempty"` // clients started so far
	Entries        Entries    `json:"entries"`
	Opened         []string   `json:"opened,omitempty"` // files of texts that the client opened
	Messages       int64      `json:"messages"`         // number of the last stored message
	LastMessageAt  *time.Time `json:"lastMessageAt,omitempty"`
	LastProgressAt *time.Time `json:"lastProgressAt,omitempty"` // of transcript or tool calls
	StalledSince   *time.Time `json:"stalledSince,omitempty"`
	Tools          *Tools     `json:"tools,omitempty"`
	Store          string     `json:"store,omitempty"` // what is wrong with the transcript, one sentence
	RunningReport  Report     `json:"runningReport"`   // both reports are read from the database: see [State.LoadReports]
	TerminalReport Report     `json:"terminalReport"`
	LastBeatAt     *time.Time `json:"lastBeatAt,omitempty"` // the last one that the guild took
	Warnings       []string   `json:"warnings,omitempty"`   // one sentence each, oldest first, at most [MaxWarnings]
}

// Outcome is the session's result so far.
type Outcome struct {
	Summary
	EndedAt    *time.Time `json:"endedAt,omitempty"`
	OutputCut  bool       `json:"outputCut,omitempty"`
	Result     *Result    `json:"result,omitempty"`
	ErrorText  string     `json:"errorText,omitempty"` // the text of a result that is an error
	Exit       *Exit      `json:"exit,omitempty"`
	EndedAfter string     `json:"endedAfter,omitempty"` // the limit that had passed at the client's end, such as 30s
	Broken     string     `json:"broken,omitempty"`     // what kept the host from its work
	RateLimit  *RateLimit `json:"rateLimit,omitempty"`
	Cancel     *Cancel    `json:"cancel,omitempty"`
	Stderr     string     `json:"stderr,omitempty"` // the end of the client's, at most [MaxStderr] characters
}

// Summary is the part of an outcome that the guild's report repeats unchanged.
type Summary struct {
	Status            Status      `json:"status"`
	Error             string      `json:"error,omitempty"`   // why it did not complete, one sentence
	Lost              int64       `json:"lost,omitempty"`    // messages that found no room
	Waiting           int64       `json:"waiting,omitempty"` // messages of the transcript that the guild's table lacked at the end
	ProviderSessionID string      `json:"providerSessionId,omitempty"`
	CostUSD           *float64    `json:"costUsd,omitempty"`
	TokenUsage        *TokenUsage `json:"tokenUsage,omitempty"`
	Output            string      `json:"output,omitempty"` // the final text, at most [MaxOutput] bytes
	Ended             string      `json:"ended,omitempty"`  // what ended the client, such as "exit", "exit-deadline", "stall"
}

// Bounds of foreign texts in a record.
const (
	MaxOutput   = 1 << 20 // bytes; no model writes so much in one message
	MaxStderr   = 2048
	MaxWarnings = 64
)

// Warn adds a warning once, and reports whether it is new.
func (s *State) Warn(text string) (fresh bool) {
	if text == "" || slices.Contains(s.Warnings, text) || len(s.Warnings) >= MaxWarnings {
		return false
	}
	s.Warnings = append(s.Warnings, text)
	return true
}

// Version is the version of the records written here.
const Version = 1

// Entries counts the session's entries by what became of them.
type Entries struct {
	Answered     int `json:"answered"`
	Queued       int `json:"queued"`
	InFlight     int `json:"inFlight"`
	DeadLettered int `json:"deadLettered"`
	// Unread counts entries replied to without opening the file with their text. They do not count as answered.
	Unread int `json:"unread,omitempty"`
}

// Unanswered returns how many entries were not answered so far.
func (e Entries) Unanswered() int { return e.InFlight + e.Queued + e.DeadLettered + e.Unread }

// Rest lists the unanswered entries, in words for those in flight, queued, dead-lettered and unread.
func (e Entries) Rest(words [4]string) (text string) {
	for i, n := range []int{e.InFlight, e.Queued, e.DeadLettered, e.Unread} {
		if n > 0 {
			text += fmt.Sprintf(", %d %s", n, words[i])
		}
	}
	return text
}

// Before is what a given inbox had counted when the session began. Those entries are not the session's.
type Before struct {
	Answered    int64 `json:"answered"`
	DeadLetters int64 `json:"dead_letters"`
	Dropped     int64 `json:"dropped"`
	Seq         int64 `json:"seq"` // number of the next commit: see [inbox.Tx.Seq]
}

// Entry is an entry and its fate in a report.
type Entry struct {
	ID   string `json:"id"`
	Fate string `json:"fate"`           // "answered", "unread", "queued", "in flight" or "dead-lettered"
	File string `json:"file,omitempty"` // the name of the file with its text, "" for none
	Why  string `json:"why,omitempty"`  // "" if obvious
}

// TokenUsage is what a session used, with the guild's names. The caches' counts are nil if the client reported none.
type TokenUsage struct {
	Input      int64  `json:"inputTokens"`
	Output     int64  `json:"outputTokens"`
	CacheRead  *int64 `json:"cacheReadTokens,omitempty"`
	CacheWrite *int64 `json:"cacheWriteTokens,omitempty"`
}

// Result is the client's last result line, and when it came.
type Result struct {
	ResultLine
	At time.Time `json:"at"`
}

// ResultLine is the part of a result line that reports repeat.
type ResultLine struct {
	Subtype  string `json:"subtype"` // "success", "error_max_turns", ...
	IsError  bool   `json:"isError"`
	NumTurns int    `json:"numTurns"`
}

// Exit is how the client ended.
type Exit struct {
	Code   int       `json:"code"`             // 1 if a signal ended it
	Signal string    `json:"signal,omitempty"` // such as SIGTERM
	At     time.Time `json:"at"`
	// Forced means that the client had finished and was ended because it did not exit.
	Forced bool `json:"forced,omitempty"`
}

// RateLimit is a rate limit that the client reported.
type RateLimit struct {
	Detail   string     `json:"detail"`
	Source   string     `json:"source"` // "ndjson-result"
	At       time.Time  `json:"at"`
	ResetsAt *time.Time `json:"resetsAt,omitempty"`
}

// Cancel is who ended the session early.
type Cancel struct {
	At time.Time `json:"at"`
	By string    `json:"by"` // such as SIGTERM, or the command
	// Grace is the time from SIGTERM to SIGKILL, such as 10s.
	Grace string `json:"grace,omitempty"`
}

// Tools is what the client did with the guild's tools.
type Tools struct {
	URL      string `json:"url"`
	Required bool   `json:"required,omitempty"` // a session that could not use them has failed
	ToolCounts
	LastAt    *time.Time `json:"lastAt,omitempty"`    // when a call last began or ended
	LastError string     `json:"lastError,omitempty"` // of the last call that failed, with the tool's name
}

// ToolCounts counts what the client did with the tools.
type ToolCounts struct {
	Configured int       `json:"configured"` // tools that the client can list
	Listed     bool      `json:"listed"`     // the client asked for the list
	Calls      int64     `json:"calls"`
	Failed     int64     `json:"failed"`         // calls that ended in an error
	Open       int64     `json:"open,omitempty"` // calls that wait for the guild
	Each       []ToolUse `json:"each,omitempty"` // the tools that were called, by name
}

// ToolUse counts the calls of one tool.
type ToolUse struct {
	Name      string `json:"name"`
	Calls     int64  `json:"calls"`
	Failed    int64  `json:"failed"`
	LastError string `json:"lastError,omitempty"`
}

// Delivery is what became of a report.
type Delivery string

// The fates of a report. drain-dlq delivers unsent ones.
const (
	Waiting      Delivery = "waiting"
	Delivered    Delivery = "delivered"
	Refused      Delivery = "refused"       // HTTP 4xx; kept as unsent
	DeadLettered Delivery = "dead-lettered" // the guild did not take it in time
)

// Report is what became of a report to the guild.
type Report struct {
	State  Delivery   `json:"state,omitempty"`  // "" until it is due
	At     *time.Time `json:"at,omitempty"`     // of the last try
	Reason string     `json:"reason,omitempty"` // why it was not delivered, one sentence
	// As is the status that the guild took instead, if it refused the true one.
	As Status `json:"as,omitempty"`
}
