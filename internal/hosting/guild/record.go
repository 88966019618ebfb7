package guild

import (
	"encoding/json"
	"fmt"
	"io"
)

// The states that a session ends in.
const (
	Completed   = "completed"
	Failed      = "failed"
	Cancelled   = "cancelled"
	Timeout     = "timeout"
	RateLimited = "rate-limited"
)

// Record is the report that a session ended. Members that are not set are left out,
// but for the status, the exit code and the transcript.
type Record struct {
	SessionID         string      `json:"sessionId"`
	Status            string      `json:"status"`
	ExitCode          int         `json:"exitCode"` // of the client; 1 if it has none
	Signal            string      `json:"signal,omitempty"`
	Error             string      `json:"error,omitempty"`
	CostUSD           json.Number `json:"costUsd,omitempty"` // as the client wrote it
	TokenUsage        *TokenUsage `json:"tokenUsage,omitempty"`
	Output            string      `json:"output,omitempty"` // the final text
	ProviderSessionID string      `json:"providerSessionId,omitempty"`

	TerminationTag        *TerminationTag        `json:"terminationTag,omitempty"`
	TerminationDiagnostic *TerminationDiagnostic `json:"terminationDiagnostic,omitempty"` // sent with "failed" only

	// What follows is heartbeat's; an older guild ignores it.

	Entries  *Entries `json:"entries,omitempty"`
	Result   *Result  `json:"result,omitempty"`   // nil if the client wrote no result line
	Ended    string   `json:"ended,omitempty"`    // what ended the client, such as "exit", "exit-deadline", "stall"
	ResetsAt string   `json:"resetsAt,omitempty"` // of a rate limit, RFC 3339
	Warnings []string `json:"warnings,omitempty"` // sentences, such as that the client never asked for its tools
	// TranscriptMissing is why the transcript is not there.
	TranscriptMissing string `json:"transcriptMissing,omitempty"`

	// Extra are the members of the config that heartbeat-host does not know. One that
	// has the name of a member of a report is left out.
	Extra map[string]json.RawMessage `json:"-"`

	// Transcript writes the JSON array of the messages. Nil writes an empty one.
	Transcript func(io.Writer) error `json:"-"`
}

// TokenUsage counts tokens. The cache's are nil if the client did not say.
type TokenUsage struct {
	Input      int64  `json:"inputTokens"`
	Output     int64  `json:"outputTokens"`
	CacheRead  *int64 `json:"cacheReadTokens,omitempty"`
	CacheWrite *int64 `json:"cacheWriteTokens,omitempty"`
}

// TerminationTag says that the provider, not the session, was the reason.
type TerminationTag struct {
	Kind   string `json:"kind"`   // "rate-limit"
	Source string `json:"source"` // "ndjson-result"
	Detail string `json:"detail"` // at most 200 characters
}

// TerminationDiagnostic is what the client left behind when it failed.
type TerminationDiagnostic struct {
	ExitCode      int    `json:"exitCode"`
	StderrExcerpt string `json:"stderrExcerpt,omitempty"` // the last 2048 characters
}

// Entries say what became of the session's entries.
type Entries struct {
	Answered     int `json:"answered"`
	Queued       int `json:"queued"`
	InFlight     int `json:"inFlight"`
	DeadLettered int `json:"deadLettered"`

	Each []Entry `json:"each,omitempty"`
}

// Entry is one entry of the session.
type Entry struct {
	ID   string `json:"id"`
	Fate string `json:"fate"` // "answered", "queued", "in flight" or "dead-lettered"
	Why  string `json:"why,omitempty"`
}

// Result is the client's last result line.
type Result struct {
	Subtype  string `json:"subtype"`
	IsError  bool   `json:"isError"`
	NumTurns int    `json:"numTurns"`
}

// Encode writes the record as JSON, the transcript last and as it comes.
func (r *Record) Encode(w io.Writer) error {
	type plain Record
	head := plain(*r)
	if head.ExitCode == 0 && head.Signal != "" {
		head.ExitCode = 1
	}
	if head.Status != Failed {
		head.TerminationDiagnostic = nil
	}
	b, err := json.Marshal(head)
	if err == nil {
		b, err = withExtra(b, r.Extra)
	}
	if err != nil {
		return fmt.Errorf("write the record of session %s: %w", r.SessionID, err)
	}
	if _, err := w.Write(append(b[:len(b)-1], `,"transcript":`...)); err != nil {
		return err
	}
	if r.Transcript == nil {
		_, err = io.WriteString(w, "[]}")
		return err
	}
	if err := r.Transcript(w); err != nil {
		return fmt.Errorf("write the transcript of session %s: %w", r.SessionID, err)
	}
	_, err = io.WriteString(w, "}")
	return err
}
