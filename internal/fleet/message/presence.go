package message

import (
	"encoding/json"
	"fmt"
	"time"
)

// The states of what an agent holds.
const (
	Waits    = "waits"     // in the inbox, for a session
	InFlight = "in flight" // a session works on it
	Answered = "answered"  // the stream is to be told
	Stalled  = "stalled"   // nothing moves, so that others may get it
	Leaving  = "leaving"   // it is given back, or set aside
)

// Presence is what an agent says of itself to those who look, in the bucket of agents under
// [AgentKey]: what it works on, and why it takes no more. Its times are by the agent's clock;
// whether the agent lives is told by the server's time of the value, which is put every
// [Presence.Every].
type Presence struct {
	Agent    string `json:"agent"`
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	Release  string `json:"release,omitempty"` // of its heartbeat-nats
	Stream   string `json:"stream"`
	Subject  string `json:"subject"`
	Consumer string `json:"consumer"`
	Inbox    string `json:"inbox"` // base name of the queue file
	// Path is the queue file's absolute path, for whoever looks on the same machine.
	Path string `json:"path,omitempty"`
	// Ledger tells the inbox from every other on that host: it names the ledger's lock.
	Ledger  string    `json:"ledger,omitempty"`
	Slots   int       `json:"slots"`
	Started time.Time `json:"started"`
	At      time.Time `json:"at"`
	// EverySeconds is how often the value is put at least: a third of AckWait.
	EverySeconds float64 `json:"every_seconds"`
	Holds        []Hold  `json:"holds"`
	// Waiting is how many entries wait in the inbox, those of others too.
	Waiting int64 `json:"waiting"`
	// HeldUp is why it takes no message although it could hold more, or why nobody works on
	// what it holds: a sentence.
	HeldUp string `json:"held_up,omitempty"`
	// Drain says that it finishes what it holds and takes no more.
	Drain bool `json:"drain,omitempty"`
	// Ended says that it ended in order: it is not coming back by itself.
	Ended bool `json:"ended,omitempty"`
	// Answered and Dead count what it told the stream since it started.
	Answered int64 `json:"answered"`
	Dead     int64 `json:"dead"`
}

// Hold is a message that the agent holds.
type Hold struct {
	ID      string `json:"id"`
	Seq     uint64 `json:"seq"`
	Subject string `json:"subject"`
	// Copy counts how often the consumer had handed it out when it came here last: of two
	// agents that hold a message, the one with the newer copy keeps it.
	Copy  uint64    `json:"copy,omitempty"`
	Since time.Time `json:"since"`
	State string    `json:"state"`
	// ProgressAt is when something last moved: the inbox, a transcript, a meter.
	ProgressAt time.Time `json:"progress_at,omitzero"`
}

// Every is how often the value is put at least.
func (a *Presence) Every() time.Duration {
	return time.Duration(a.EverySeconds * float64(time.Second))
}

// ParsePresence reads a value.
func ParsePresence(value []byte) (Presence, error) {
	var a Presence
	if err := json.Unmarshal(value, &a); err != nil {
		return a, fmt.Errorf("read what an agent says of itself: %w", err)
	}
	return a, nil
}
