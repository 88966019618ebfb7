package look

import (
	"time"

	"heartbeat/internal/price"
	"heartbeat/internal/why"
)

// Picture is what was known at a moment.
type Picture struct {
	At      time.Time
	Inboxes []Inbox
	// Failed are sentences about folders that a person named and that cannot be searched,
	// and Notes about what was left out.
	Failed, Notes []string
}

// Inbox is what is known of one inbox. Its texts are not cleaned.
type Inbox struct {
	why.Facts
	State why.State
	Why   string
	// Oldest is since when the entry waits that comes next: its sent_at, or where it has
	// none, when the inbox was last written to. Nil if none waits.
	Oldest *time.Time
	// DeadLetters are those that nobody dealt with.
	DeadLetters int
	// Today is what was spent since midnight, as far as the client said so.
	Today price.Amount
	// Seen changes whenever anything of the inbox does.
	Seen  int64
	Notes []string
}

// Path names the inbox.
func (i Inbox) Path() string { return i.Facts.Inbox }

// Asks reports whether a person is asked for something.
func (i Inbox) Asks() bool { return len(i.Held) > 0 || i.Asking() != nil }
