package guild

import (
	"encoding/json"
	"fmt"
	"heartbeat/internal/hosting/folder"
)

// Record is the report that a session ended. Members that are not set are left out,
// but for the status, the exit code and the transcript.
type Record struct {
	SessionID         string             `json:"sessionId"`
	Status            folder.Status      `json:"status"`
	ExitCode          int                `json:"exitCode"` // of the client; 1 if it has none
	Signal            string             `json:"signal,omitempty"`
	Error             string             `json:"error,omitempty"`
	CostUSD           json.Number        `json:"costUsd,omitempty"` // as the client wrote it
	TokenUsage        *folder.TokenUsage `json:"tokenUsage,omitempty"`
	Output            string             `json:"output,omitempty"` // the final text
	ProviderSessionID string             `json:"providerSessionId,omitempty"`

	TerminationTag        *TerminationTag        `json:"terminationTag,omitempty"`
	TerminationDiagnostic *TerminationDiagnostic `json:"terminationDiagnostic,omitempty"` // sent with "failed" only

	// What follows is heartbeat's; an older guild ignores it.

	Entries  *Entries `json:"entries,omitempty"`
	Result   *Result  `json:"result,omitempty"`   // nil if the client wrote no result line
	Ended    string   `json:"ended,omitempty"`    // what ended the client, such as "exit", "exit-deadline", "stall"
	ResetsAt string   `json:"resetsAt,omitempty"` // of a rate limit, RFC 3339
	Warnings []string `json:"warnings,omitempty"` // sentences, such as that the client never asked for its tools
	// Tools is what the client did with the guild's tools; nil if it had none.
	Tools *folder.ToolCounts `json:"tools,omitempty"`
	// Lost is how many messages found no room, and Waiting how many of the transcript the
	// guild's table does not have yet.
	Lost    int64 `json:"lost,omitempty"`
	Waiting int64 `json:"waiting,omitempty"`

	// Extra are the members of the config that heartbeat-host does not know. One that
	// has the name of a member of a report is left out.
	Extra map[string]json.RawMessage `json:"-"`
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
	folder.Entries
	Each []Entry `json:"each,omitempty"`
}

// Entry is one entry of the session.
type Entry struct {
	ID   string `json:"id"`
	Fate string `json:"fate"` // "answered", "unread", "queued", "in flight" or "dead-lettered"
	// File is the name of the file that its text was delivered in, "" for none.
	File string `json:"file,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Result is the client's last result line.
type Result struct {
	Subtype  string `json:"subtype"`
	IsError  bool   `json:"isError"`
	NumTurns int    `json:"numTurns"`
}

// Encode is the record as JSON, without its transcript.
func (r *Record) Encode() (string, error) {
	type plain Record
	head := plain(*r)
	if head.ExitCode == 0 && head.Signal != "" {
		head.ExitCode = 1
	}
	if head.Status != folder.Failed {
		head.TerminationDiagnostic = nil
	}
	b, err := json.Marshal(head)
	if err == nil {
		b, err = withExtra(b, r.Extra)
	}
	if err != nil {
		return "", fmt.Errorf("write the record of session %s: %w", r.SessionID, err)
	}
	return string(b), nil
}
