package message

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// States of a message that an agent holds.
const (
	Waits    = "waits"     // in the inbox, for a session
	InFlight = "in flight" // a session works on it
	Answered = "answered"  // and not yet acknowledged
	Stalled  = "stalled"   // nothing moves, so others may get it
	Leaving  = "leaving"   // it is being given back or set aside
)

// Presence is what an agent publishes about itself, in the bucket of agents under [AgentKey]: what it works on, and
// why it takes no more. Its times are by the agent's clock. The server's time of the value shows whether the agent
// lives, since the agent puts the value every EverySeconds: see [Presence.Lives].
type Presence struct {
	Agent   string `json:"agent"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Release string `json:"release,omitempty"` // of its heartbeat-nats
	Source
	Inbox string `json:"inbox"`          // base name of the queue file
	Path  string `json:"path,omitempty"` // its absolute path, for readers on the same machine
	// Ledger identifies the ledger's lock, and so the inbox on that host. A copy of the host has another Boot.
	Ledger       string    `json:"ledger,omitempty"`
	Boot         string    `json:"boot,omitempty"`
	Slots        int       `json:"slots"`
	Started      time.Time `json:"started"`
	At           time.Time `json:"at"`
	EverySeconds float64   `json:"every_seconds"` // the longest time between two puts of the value: a third of AckWait
	Holds        []Hold    `json:"holds"`
	// Waiting counts all entries that wait in the inbox, whoever sent them.
	Waiting int64 `json:"waiting"`
	Hindrance
	Drain bool `json:"drain,omitempty"` // the agent finishes what it holds and takes no more
	Ended bool `json:"ended,omitempty"` // the agent ended in order, and will not come back by itself
	// Answered and Dead count what the agent told the stream since it started.
	Answered int64 `json:"answered"`
	Dead     int64 `json:"dead"`
}

// Hindrance is why an agent takes no message.
type Hindrance struct {
	// HeldUp is a sentence: why the agent takes no message although it has room, or why its entries lie idle.
	HeldUp string `json:"held_up,omitempty"`
	Busy   bool   `json:"busy,omitempty"` // held up by a session that works on an entry of somebody else
}

// Source is where an agent's messages come from.
type Source struct {
	Stream   string `json:"stream"`
	Subject  string `json:"subject"`
	Consumer string `json:"consumer"`
}

// Hold is a message that an agent holds.
type Hold struct {
	ID         string    `json:"id"`
	Seq        uint64    `json:"seq"`
	Subject    string    `json:"subject"`
	Copy       uint64    `json:"copy,omitempty"`
	Since      time.Time `json:"since"`
	State      string    `json:"state"`                // "waits", "in flight", "answered", "stalled" or "leaving"
	ProgressAt time.Time `json:"progress_at,omitzero"` // when something last moved
}

// Keeps reports whether the agent, last heard at heard, keeps a message from others whose lease it took at taken. It
// does not name yet what it took since. Further apart than an AckWait are only the clocks of two servers.
func (a *Presence) Keeps(id string, seq uint64, heard, taken time.Time) bool {
	since := taken.Sub(heard)
	return since >= 0 && since < a.ackWait() || slices.ContainsFunc(a.Holds, func(h Hold) bool {
		return h.ID == id && h.Seq == seq && h.State != Stalled && h.State != Leaving
	})
}

// DefaultAckWait is the AckWait of a consumer or an agent that names none.
const DefaultAckWait = time.Minute

// Lives returns for how much longer than now an agent last heard at heard counts as alive, by the server's clock: for
// an AckWait in all, and not at all once it has ended.
func (a *Presence) Lives(heard, now time.Time) time.Duration {
	if a.Ended {
		return 0
	}
	return max(0, a.ackWait()-now.Sub(heard))
}

func (a *Presence) ackWait() time.Duration {
	return cmp.Or(max(0, 3*time.Duration(a.EverySeconds*float64(time.Second))), DefaultAckWait)
}

// ParsePresence reads a value of the bucket of agents.
func ParsePresence(value []byte) (a Presence, err error) {
	if err = json.Unmarshal(value, &a); err != nil {
		err = fmt.Errorf("read what an agent says of itself: %w", err)
	}
	return a, err
}
