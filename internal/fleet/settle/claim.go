package settle

import (
	"cmp"
	"fmt"

	"heartbeat/internal/fleet/names"
	"heartbeat/internal/words"
)

// Claim is a message that an agent holds, as its ledger keeps it.
type Claim struct {
	Stream string // the stream's name
	Seq    uint64 // the message's sequence in the stream
	// Subject is the message's own.
	Subject string
	// Ack is the copy's subject for acknowledgements: the reply subject that JetStream gave it.
	Ack string
	// Reply is where the answer goes, or "": see [names.HeaderReply].
	Reply string
	// Copy counts how often the consumer handed the message out: 1, 2, …
	Copy uint64
	// ID is the message's id, of any bytes.
	ID string
	// Again is how often its dead letter was requeued: see [names.HeaderAgain].
	Again int
	// EntryID is the entry that the message became. An agent that settles a message
	// without one leaves it empty.
	EntryID string
	// Agent is the name of the agent, which no other agent of the stream has.
	Agent string
}

func (c Claim) key() string { return names.Key(c.ID) }

// name is the message in a sentence.
func (c Claim) name() string {
	place := names.Place(c.Stream, c.Seq)
	switch {
	case c.ID == "":
		return place
	case names.IsAt(c.Stream, place, c.ID):
		return c.ID
	}
	return fmt.Sprintf("%s (%s)", words.Brief(cmp.Or(c.ID, place)), place)
}

// check refuses what nothing could be told about.
func (c Claim) check(stream string) error {
	switch {
	case c.Stream != stream:
		return fmt.Errorf("it is claimed from the stream %q, and this agent serves %q", c.Stream, stream)
	case c.Agent == "":
		return fmt.Errorf("its claim names no agent")
	case c.ID == "":
		return fmt.Errorf("its claim has no id")
	}
	return nil
}
