package upstream

import (
	"cmp"
	"fmt"
	"time"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/words"
)

// Claim is a message that the agent holds.
type Claim struct {
	// ID names the message, and Entry its entry in the inbox: see package message.
	ID    string `json:"id"`
	Entry string `json:"entry"`
	// Agent is the name of the agent, which no other agent of the stream has.
	Agent string `json:"-"`
	// Again is how often the message's dead letter was requeued.
	Again   int    `json:"again,omitempty"`
	Stream  string `json:"stream"`
	Seq     uint64 `json:"seq"`
	Subject string `json:"subject"`
	// Ack is where the latest copy of the message is acknowledged, and Copy which one that
	// is, from 1.
	Ack  string `json:"ack"`
	Copy uint64 `json:"copy"`
	// Reply is the subject to which the answer goes, "" for none.
	Reply string `json:"reply,omitempty"`
	// Appended is the copy that the entry was made from.
	Appended uint64 `json:"appended"`
	// Attempt is which attempt at the message this is, from 1: copies without those that
	// were given back.
	Attempt int       `json:"attempt,omitempty"`
	At      time.Time `json:"at"`
	// Taken is when this life of the agent took the message, zero for one of a life before.
	Taken time.Time `json:"-"`
	// Refused is why the message cannot be an entry, or is not to be one any more; it has
	// none then, and Detail is what its dead letter gets.
	Refused string `json:"refused,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// Payload is the message's, for its dead letter, where that could not be told from its
	// entry.
	Payload []byte `json:"payload,omitempty"`
	// Headers are lines NAME:VALUE that the sender gave the message, for its dead letter, and
	// HeadersLeft is how many were too many.
	Headers     [][]byte `json:"headers,omitempty"`
	HeadersLeft int      `json:"headers_left,omitempty"`
	// Hash is the entry's entry_id where the inbox had the entry before, so that it is not
	// of the copy Appended.
	Hash string `json:"entry_id,omitempty"`
	// GivingBack says until when the message should wait on the server. Its entry was
	// taken back, or is about to be.
	GivingBack *time.Time `json:"giving_back,omitempty"`
}

func (c Claim) key() string { return message.Key(c.ID) }

// entry is the entry that the message became, or "".
func (c Claim) entry() string {
	if c.Refused != "" {
		return ""
	}
	return c.Entry
}

// name is the message in a sentence.
func (c Claim) name() string {
	place := message.Place(c.Stream, c.Seq)
	switch {
	case c.ID == "":
		return place
	case c.Seq == 0 || message.IsAt(c.Stream, place, c.ID):
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
