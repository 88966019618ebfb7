package inbox

import (
	"time"

	"heartbeat/internal/journal"
)

// Receipt says where an appended message is.
type Receipt struct {
	ID      string `json:"id"`
	EntryID string `json:"entry_id"`
	// Start and End are its byte range in the inbox, both 0 where it is not there
	// or not known.
	Start int64 `json:"start_offset"`
	End   int64 `json:"end_offset"`
	// Appended is false when an entry of that ID was there before.
	Appended bool `json:"appended"`
	// NotBefore is when a scheduled entry is moved to the inbox.
	NotBefore *time.Time `json:"not_before,omitempty"`
	// Found says where an entry was that was there before.
	Found string `json:"found,omitempty"`
	// Warnings are sentences about what was found and mended besides.
	Warnings []string `json:"warnings,omitempty"`

	seen watermark
}

// watermark is how much of the files of outcomes there was when an entry was
// appended: its own outcome comes later.
type watermark struct{ results, deadLetters journal.Point }

// Where an entry of a Receipt was found.
const (
	FoundScheduled = "scheduled"
	FoundQueued    = "queued"
	FoundInFlight  = "in flight"
	FoundAnswered  = "answered"
)
