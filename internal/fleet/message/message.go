package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/inbox"
	"heartbeat/internal/money/price"
)

const (
	// maxID limits the ids, in bytes, that an entry keeps unchanged.
	maxID = 512
	// maxReply limits a reply subject, in bytes. No subject of a server is longer.
	maxReply = 1024
	// maxAgain is more often than anybody requeues a dead letter. A larger number counts as 0.
	maxAgain = 1_000_000
	// maxText limits the payloads, in bytes, that an inbox surely keeps in its queue, where each byte takes up to six.
	// The inbox puts a longer payload into a file, and its dead letter names the file.
	maxText = 256 << 10
)

// Message is a message of a stream, as an agent takes it and notes it.
type Message struct {
	// ID names the work: the header Heartbeat-Id, else Nats-Msg-Id, else [Unnamed].
	ID string `json:"id"`
	// Again counts how often the message's dead letter was requeued.
	Again int `json:"again,omitempty"`
	// Entry is the id of the message's entry in the inbox: see [EntryID].
	Entry string `json:"entry"`

	Stream  string `json:"stream"`
	Seq     uint64 `json:"seq"`
	Subject string `json:"subject"`
	// Stored is when the server stored the message. It tells the message from one of an earlier stream. It is zero
	// in the ledger of an earlier release.
	Stored time.Time `json:"stored,omitzero"`
	// Ack is the subject for acknowledging this copy. Reply is the subject for the answer, or "".
	Ack   string `json:"ack"`
	Reply string `json:"reply,omitempty"`
	// Copy counts the deliveries of the message, from 1.
	Copy uint64 `json:"copy"`
	// After is the sequence of a message that must leave the stream before this one starts, or 0.
	After uint64 `json:"-"`
	// Data is the payload, unchanged.
	Data []byte `json:"-"`
	// Headers are the sender's own headers as lines NAME:VALUE. HeadersLeft counts those beyond the limits.
	Headers     [][]byte `json:"headers,omitempty"`
	HeadersLeft int      `json:"headers_left,omitempty"`

	wrong error // why it cannot be an entry, whatever its payload
}

// Parse reads the metadata and headers of a message. It fails if the message did not come from a stream.
func Parse(m jetstream.Msg) (Message, error) {
	meta, err := m.Metadata()
	if err != nil {
		return Message{}, fmt.Errorf("read the message on %s: it does not come from a stream: %w", m.Subject(), err)
	}
	w := Message{
		Stream: meta.Stream, Seq: meta.Sequence.Stream, Subject: m.Subject(), Stored: meta.Timestamp.UTC(),
		Ack: m.Reply(), Copy: meta.NumDelivered, Data: m.Data(),
	}
	h := m.Headers()
	w.Again = AgainOf(h)
	if n, err := strconv.ParseUint(h.Get(HeaderAfter), 10, 64); err == nil && n < w.Seq {
		w.After = n
	}
	w.ID, w.wrong = IDOf(w.Stream, w.Seq, meta.Timestamp, h)
	if to := h.Get(HeaderReply); CanPublish(to) && len(to) <= maxReply {
		w.Reply = to
	}
	w.Entry = EntryID(w.ID, w.Again)
	w.Headers, w.HeadersLeft = senders(h)
	return w, nil
}

// IDOf returns the id of a message of a stream, and an error if its headers name an unusable one.
func IDOf(stream string, seq uint64, stored time.Time, h nats.Header) (string, error) {
	for _, name := range []string{HeaderID, HeaderMsgID} {
		id := h.Get(name)
		if len(id) > MaxID {
			return Unnamed(stream, seq, stored), fmt.Errorf("its header %s has %d bytes, and an id may have no more than %d", name, len(id), MaxID)
		}
		// An id that looks like one of [Unnamed] would be mistaken for another message's.
		if id != "" && (AgainOf(h) > 0 || !IsUnnamed(stream, id)) {
			return id, nil
		}
	}
	return Unnamed(stream, seq, stored), nil
}

// AgainOf reads how often a message's dead letter was requeued.
func AgainOf(h nats.Header) int {
	n, err := strconv.Atoi(h.Get(HeaderAgain))
	if err != nil || n < 0 || n > maxAgain {
		return 0
	}
	return n
}

// EntryID returns the inbox id of a message that was requeued again times: the message's own id, then ID~1, ID~2, …
// An id that already ends in such a count gets ~0. An id that is too long, begins with = or is refused by the inbox
// is spelt as [Key] spells it, always behind an =.
func EntryID(id string, again int) string {
	if inbox.CheckID(id) != nil || len(id) > maxID || strings.HasPrefix(id, "=") {
		if id = Key(id); id[0] != '=' { // no id that is kept unchanged begins so
			id = "=k" + id
		}
	}
	if again > 0 || endsInCount(id) {
		id += "~" + strconv.Itoa(again)
	}
	return id
}

func endsInCount(id string) bool {
	i := strings.LastIndexByte(id, '~')
	return i >= 0 && i+1 < len(id) && strings.Trim(id[i+1:], "0123456789") == ""
}

// CanPublish reports whether a subject can be published to: words separated by dots, without wildcards or spaces.
func CanPublish(subject string) bool {
	return subject != "" && !strings.ContainsAny(subject, " \t\r\n\x00*>") && !strings.HasPrefix(subject, ".") &&
		!strings.HasSuffix(subject, ".") && !strings.Contains(subject, "..")
}

// origin is the metadata that says which message an entry came from.
type origin struct {
	Stream  string `json:"stream"`
	Seq     uint64 `json:"seq"`
	Subject string `json:"subject"`
	Copy    uint64 `json:"copy,omitempty"`
}

// InboxMessage returns the message for the inbox, or why it cannot be an entry: it then becomes a dead letter.
func (w *Message) InboxMessage() (inbox.Message, error) {
	if w.wrong != nil {
		return inbox.Message{}, w.wrong
	}
	m := inbox.Message{Text: string(w.Data)}
	if hasPrompt(w.Data) { // read it like a line of a batch
		var line bytes.Buffer
		err := json.Compact(&line, w.Data)
		if err == nil {
			m, err = inbox.ParseMessage(line.Bytes())
		}
		if err == nil {
			_, err = price.ParseSentLimits(m.Limits)
		}
		if err != nil {
			return m, err
		}
	}
	m.ID = w.Entry
	if m.Metadata == nil {
		m.Metadata = map[string]any{}
	}
	m.Metadata[inbox.StreamMember] = origin{w.Stream, w.Seq, w.Subject, w.Copy}
	return m, m.Check()
}

// IsText reports whether a dead letter of the inbox holds the payload, byte for byte, as its text.
func (w *Message) IsText() bool { return len(w.Data) <= maxText && !hasPrompt(w.Data) }

func hasPrompt(data []byte) bool {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) || !utf8.Valid(data) {
		return false
	}
	// A struct would accept PROMPT, which the inbox does not.
	var o map[string]json.RawMessage
	return json.Unmarshal(data, &o) == nil && bytes.HasPrefix(o["prompt"], []byte(`"`))
}

// CopyOf returns which copy of a message an entry came from, by the metadata of its result or dead letter, or 0.
func CopyOf(metadata map[string]json.RawMessage) uint64 {
	var o origin
	if json.Unmarshal(metadata[inbox.StreamMember], &o) != nil {
		return 0
	}
	return o.Copy
}

const (
	// maxHeaders and maxHeaderBytes limit the headers kept for a dead letter: the first by name.
	maxHeaders     = 100
	maxHeaderBytes = 16 << 10
)

// senders returns the sender's own headers as lines NAME:VALUE, and how many were left out.
func senders(h nats.Header) (lines [][]byte, left int) {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if !isSenders(name) {
			continue
		}
		for _, value := range h[name] {
			if size += len(name) + 1 + len(value); len(lines) >= maxHeaders || size > maxHeaderBytes {
				left++
				continue
			}
			lines = append(lines, []byte(name+":"+value))
		}
	}
	return lines, left
}

// Restore adds the headers in lines to h. An agent wrote the lines, so Restore drops what no sender could have set.
func Restore(h nats.Header, lines []string) {
	for _, line := range lines {
		name, value, found := strings.Cut(line, ":")
		if found && isSenders(name) && !strings.ContainsAny(value, "\r\n\x00") {
			h.Add(name, value)
		}
	}
}

// isSenders reports whether a header is the sender's own. JetStream's headers would take effect a second time, and a
// requeued message gets the others anew.
func isSenders(name string) bool {
	switch name {
	case "", HeaderID, HeaderAgain, HeaderReply:
		return false
	}
	isOdd := func(c rune) bool { return c <= ' ' || c > '~' || c == ':' }
	return !strings.ContainsFunc(name, isOdd) && !strings.HasPrefix(strings.ToLower(name), "nats-")
}
