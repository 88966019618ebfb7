package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
)

// MaxHops is how many entries in a row may each have been sent by an agent that worked on
// the one before: agents that feed each other come to an end.
const MaxHops = 8

// Members of the metadata of an entry that an agent sent.
const (
	HopsMember       = "hops"        // how many agents in a row, from 1
	EnqueuedByMember = "enqueued_by" // the id of the entry that was worked on
)

// ErrHops says that agents have handed work on for too long.
var ErrHops = errors.New("agents have handed this work on too often")

// Enqueue sends an entry into an inbox, the agent's own or another one, on behalf of the
// entry that the agent works on. perHour is how many that inbox takes from agents in an
// hour, 0 for any number; the error matches [inbox.RateError] if it takes none now.
func Enqueue(ctx context.Context, own, into *inbox.Inbox, c Caller, m inbox.Message, perHour int) (inbox.Receipt, error) {
	now, err := Of(own, c)
	if err != nil {
		return inbox.Receipt{}, err
	}
	for _, name := range []string{HopsMember, EnqueuedByMember} {
		if _, there := m.Metadata[name]; there {
			return inbox.Receipt{}, fmt.Errorf("metadata cannot be named %q: it says which agents sent the entry", name)
		}
	}
	if now.Hops >= MaxHops {
		return inbox.Receipt{}, fmt.Errorf("%w: %d entries in a row were sent by an agent that worked on the one before, and that is the most. Finish the work here, or say in the result what is left to do", ErrHops, now.Hops)
	}
	meta := maps.Clone(m.Metadata)
	if meta == nil {
		meta = map[string]any{}
	}
	meta[HopsMember], meta[EnqueuedByMember] = now.Hops+1, now.name()
	m.Metadata = meta
	return into.AppendSelf(ctx, m, cli.DefaultSettle, perHour)
}

func (c Current) name() string {
	if c.ID != "" {
		return c.ID
	}
	return c.EntryID
}

// hopsOf is what the metadata says; whatever cannot be understood counts as the most, since
// nobody but [Enqueue] should have written it.
func hopsOf(meta map[string]json.RawMessage) int {
	raw, there := meta[HopsMember]
	if !there {
		return 0
	}
	var n int
	if json.Unmarshal(raw, &n) != nil || n < 0 || string(raw) == "null" {
		return MaxHops
	}
	return n
}
