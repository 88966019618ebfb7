package stream

import (
	"encoding/json"
	"fmt"

	"heartbeat/internal/flat"
)

// Message is one line of the stream.
type Message struct {
	Type      string // "assistant", "user", "result", "system", ...; empty if the line has none
	Subtype   string
	SessionID string // the client's own id of the session; empty if the line has none

	// Raw is the object on one line without blanks between its parts and without a
	// newline, otherwise as the client spelled it, in valid UTF-8.
	Raw json.RawMessage
}

// TypeHost is the type of messages that stand for one that could not be kept.
const TypeHost = "heartbeat"

// Subtypes of [TypeHost].
const (
	SubtypeCut  = "cut"  // the line was longer than [MaxLine]
	SubtypeLost = "lost" // there was no room for the message
)

// InTranscript reports whether the message is part of the conversation, which is all
// that the guild's own transcript has.
func (m Message) InTranscript() bool { return m.Type == "assistant" || m.Type == "user" }

// StandIn is a message in the place of one of that many bytes.
func StandIn(subtype, was string, bytes int64) Message {
	quoted, err := flat.JSON(was)
	if err != nil {
		quoted = []byte(`""`)
	}
	return Message{
		Type: TypeHost, Subtype: subtype,
		Raw: fmt.Appendf(nil, `{"type":%q,"subtype":%q,"was":%s,"bytes":%d}`, TypeHost, subtype, quoted, bytes),
	}
}

// Parse makes a message of one JSON object, and reports whether it is one. It keeps
// raw and changes it in place.
func Parse(raw []byte) (Message, bool) {
	raw = validUTF8(raw)
	if len(raw) == 0 || raw[0] != '{' || !json.Valid(raw) {
		return Message{}, false
	}
	m := Message{Raw: compact(raw)}
	flat.Each(m.Raw, func(name, value []byte) {
		switch string(name) {
		case `"type"`:
			m.Type = short(value)
		case `"subtype"`:
			m.Subtype = short(value)
		case `"session_id"`:
			m.SessionID = short(value)
		}
	})
	return m, true
}

// maxShort is the longest name or id that is believed, in bytes of JSON.
const maxShort = 512

// short is the string that a value spells, or nothing if it is no short string.
func short(value []byte) string {
	if len(value) > maxShort {
		return ""
	}
	return flat.Text(string(value))
}
