package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"heartbeat/internal/flat"
	"heartbeat/internal/hosting/store"
)

// Message is one line of the stream.
type Message struct {
	Type      string // "assistant", "user", "result", "system", ...; empty if the line has none
	Subtype   string
	SessionID string // the client's own ID of the session; empty if the line has none

	// Raw is the object on one line, without blanks between its parts and without a newline,
	// otherwise as the client spelled it, in valid UTF-8.
	Raw json.RawMessage
}

// Stored is a message with its number, as the transcript has it and readers get it.
type Stored = store.Message

// TypeHost is the type of a stand-in for a message that could not be kept.
const TypeHost = "heartbeat"

// Subtypes of [TypeHost].
const (
	SubtypeCut  = "cut"  // the line was longer than [MaxLine]
	SubtypeLost = "lost" // there was no room for the message
)

// StandIn returns a message that stands for one of the given size.
func StandIn(subtype string, bytes int64) Message {
	return Message{
		Type: TypeHost, Subtype: subtype,
		Raw: fmt.Appendf(nil, `{"type":%q,"subtype":%q,"was":"","bytes":%d}`, TypeHost, subtype, bytes),
	}
}

// Parse makes a message of raw, which it keeps without blanks, and reports whether raw is a JSON object.
func Parse(raw []byte) (Message, bool) {
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	if len(raw) == 0 || raw[0] != '{' || !json.Valid(raw) {
		return Message{}, false
	}
	m := Message{Raw: compact(raw)}
	flat.Each(m.Raw, func(name, value []byte) {
		switch string(name) {
		case `"type"`:
			m.Type = short(valueOf(value))
		case `"subtype"`:
			m.Subtype = short(valueOf(value))
		case `"session_id"`:
			m.SessionID = short(valueOf(value))
		}
	})
	return m, true
}

// Answer returns an assistant message's model, and the name and text of the API error that it stands for, or "".
func (m Message) Answer() (model, failure, text string) {
	line := valueOf(m.Raw)
	message := line.Get("message")
	if failure = line.Get("error").Text(); failure != "" {
		text = texts(message.Get("content"))
	}
	return short(message.Get("model")), strings.Clone(failure), text
}

// compact removes the blanks between the parts of valid JSON, in place.
func compact(b []byte) []byte {
	kept, quoted := 0, false
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case quoted && c == '\\':
			b[kept], b[kept+1] = c, b[i+1] // an escaped character ends no string
			i, kept = i+1, kept+2
			continue
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			continue
		}
		b[kept] = c
		kept++
	}
	return b[:kept]
}

// valueOf returns b as a value without copying it: a message may have many megabytes, and nobody changes it.
func valueOf(b []byte) flat.Value { return flat.Value(unsafe.String(unsafe.SliceData(b), len(b))) }

// maxShort is the longest accepted name or ID, in bytes of JSON.
const maxShort = 512

// short returns the string that a value spells, "" if it is no short string.
func short(v flat.Value) string {
	if len(v) > maxShort {
		return ""
	}
	return strings.Clone(v.Text()) // does not keep the whole message
}

// textFile matches the name of a file into which an inbox puts a long text.
var textFile = regexp.MustCompile(`\.entry-[0-9]+-[0-9]+-[0-9a-f]+\.txt`)

// AnyTextFile in [Tally.Opened] stands for all such files: a call named a pattern.
const AnyTextFile = ".entry-*"

const maxOpened = 1000

// Opened lists the files of long texts that successful tool calls named: evidence that the client
// opened a text that it was told to read.
func (t *Tally) Opened() []string { return slices.Sorted(maps.Keys(t.opened)) }

func textFiles(input flat.Value) []string {
	if !strings.Contains(string(input), ".entry-") {
		return nil
	}
	found := textFile.FindAllString(string(input), maxOpened)
	for i := range found {
		found[i] = strings.Clone(found[i]) // does not keep the whole message
	}
	if found == nil {
		found = []string{AnyTextFile}
	}
	return found
}

func (t *Tally) closeCall(id string, failed bool) {
	for _, name := range t.open[id].Files {
		if !failed && len(t.opened) < maxOpened {
			put(&t.opened, name, true)
		}
	}
	delete(t.open, id)
}
