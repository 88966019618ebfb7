package session

// State is how far a session is, as its reports spell it.
type State string

// The states. Running and what is before it can change; the others are final.
const (
	Pending     State = "pending"
	Running     State = "running"
	Completed   State = "completed" // every entry was answered
	Failed      State = "failed"
	Cancelled   State = "cancelled"
	RateLimited State = "rate-limited"
	TimedOut    State = "timeout"
)

// Final reports whether a session in this state is over.
func (s State) Final() bool { return s != "" && s != Pending && s != Running }
