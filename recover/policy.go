package recover

// Policy says what becomes of an orphan.
type Policy string

// The policies.
const (
	// DeadLetter keeps the orphan in .dead-letter.jsonl for an operator.
	DeadLetter Policy = "deadletter"
	// Retry delivers it again, as often as the attempts allow, and keeps it as
	// a dead letter after that.
	Retry Policy = "retry"
	// Drop forgets it: whoever sent it sends it again.
	Drop Policy = "drop"
)

// DefaultMaxAttempts is how often an entry is delivered before Retry gives up.
const DefaultMaxAttempts = 3
