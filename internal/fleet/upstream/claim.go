package upstream

import (
	"fmt"
	"time"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/words"
)

// Claim is a message that the agent holds: the latest copy that came.
type Claim struct {
	message.Message
	// Agent is the agent's name, unique in its stream.
	Agent string `json:"-"`
	// Appended is the copy that the entry was made from.
	Appended uint64 `json:"appended"`
	// Lease is the revision of the message's [Lease]. It is 0 if the agent does not hold it, as in the ledger of a
	// release without leases. Attempt counts from 1.
	Lease   uint64    `json:"lease,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	At      time.Time `json:"at"`
	// Taken is when this life of the agent asked for the message, or zero for a message of an earlier life.
	Taken time.Time `json:"-"`
	// Refused is why the message cannot be an entry, or may no longer be one. The claim has no entry then, and
	// Detail goes into the dead letter.
	Refused string `json:"refused,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// Payload is for the message's dead letter, where the entry cannot supply it.
	Payload []byte `json:"payload,omitempty"`
	// Hash is the entry's entry_id if the inbox already had the entry, which then is not from the copy Appended.
	Hash string `json:"entry_id,omitempty"`
	// GivingBack says until when the message should wait on the server. Its entry was or is being taken back.
	GivingBack *time.Time `json:"giving_back,omitempty"`
}

func (c Claim) key() string { return message.Key(c.ID) }

// entry returns the id of the message's entry, or "".
func (c Claim) entry() string {
	if c.Refused != "" {
		return ""
	}
	return c.Entry
}

// name returns the message's name for a sentence.
func (c Claim) name() string {
	place := message.Place(c.Stream, c.Seq)
	switch {
	case c.ID == "":
		return place
	case c.Seq == 0 || message.IsAt(c.Stream, place, c.ID):
		return c.ID
	}
	return fmt.Sprintf("%s (%s)", words.Brief(c.ID), place)
}
