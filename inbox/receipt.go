package inbox

import (
	"time"

	"heartbeat/internal/journal"
)

// Receipt says where an appended message is.
type Receipt struct {
	ID      string `json:"id"`
	EntryID string `json:"entry_id"`
	// Start and End are its byte range in the inbox, both 0 if it is not there or
	// that is unknown.
	Start int64 `json:"start_offset"`
	End   int64 `json:"end_offset"`
	// Appended is false if an entry of that ID existed before.
	Appended bool `json:"appended"`
	// NotBefore is when a scheduled entry moves to the inbox.
	NotBefore *time.Time `json:"not_before,omitempty"`
	// Found says where an entry was that existed before.
	Found string `json:"found,omitempty"`
	// Warnings are sentences about what was found and repaired on the way.
	Warnings []string `json:"warnings,omitempty"`

	seen watermark
}

// watermark is how long the files of outcomes were when an entry was appended:
// its own outcome comes later.
type watermark struct{ results, deadLetters journal.Point }

// Where an entry of a Receipt was found.
const (
	FoundScheduled = "scheduled"
	FoundQueued    = "queued"
	FoundInFlight  = "in flight"
	FoundAnswered  = "answered"
)
