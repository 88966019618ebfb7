package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/inbox"
)

const (
	// maxID is how many bytes of an id an entry has as they are.
	maxID = 512
	// maxReply is the longest reply subject, in bytes; subjects of a server are no longer.
	maxReply = 1024
	// maxAgain is more often than anybody requeues a dead letter; a larger number counts
	// for none.
	maxAgain = 1_000_000
	// mostText is the longest text that an inbox surely has in its queue: it puts what is
	// longer into a file, and its dead letter names that. A byte takes six at most.
	mostText = 256 << 10
	// member is what the entry has of its message, for people.
	member = "nats"
)

// Message is a message of a stream, as an agent takes it up.
type Message struct {
	// ID names the work: the header Heartbeat-Id, else Nats-Msg-Id, else [Unnamed].
	ID string
	// Again is how often the message's dead letter was requeued.
	Again int
	// Entry is the id of its entry in the inbox: see [EntryID].
	Entry string

	Stream  string
	Seq     uint64
	Subject string
	// Ack is where it is acknowledged, and Reply where its answer goes, "" for nowhere.
	Ack, Reply string
	// Copy counts the deliveries of the message, from 1.
	Copy uint64
	// Data is the payload as it came.
	Data []byte
	// Headers are lines NAME:VALUE of those that the sender chose, and HeadersLeft is how many
	// were too many to be kept.
	Headers     [][]byte
	HeadersLeft int

	wrong error // why it cannot be an entry, whatever its payload is
}

// Of reads what a message says of itself. The error says that it did not come from a stream.
func Of(m jetstream.Msg) (Message, error) {
	meta, err := m.Metadata()
	if err != nil {
		return Message{}, fmt.Errorf("read the message on %s: it does not come from a stream: %w", m.Subject(), err)
	}
	w := Message{
		Stream: meta.Stream, Seq: meta.Sequence.Stream, Subject: m.Subject(),
		Ack: m.Reply(), Copy: meta.NumDelivered, Data: m.Data(),
	}
	h := m.Headers()
	if n, err := strconv.Atoi(h.Get(HeaderAgain)); err == nil && n > 0 && n <= maxAgain {
		w.Again = n
	}
	for _, name := range []string{HeaderID, HeaderMsgID} {
		if w.ID == "" {
			w.ID = h.Get(name)
		}
		if len(w.ID) > MaxID { // what is told of it would be refused by the server
			w.wrong = fmt.Errorf("its header %s has %d bytes, and an id may have no more than %d", name, len(w.ID), MaxID)
			w.ID = ""
			break
		}
		// Whoever names a message as one without an id would have it taken for that one.
		if w.Again == 0 && IsUnnamed(w.Stream, w.ID) {
			w.ID = ""
		}
	}
	if w.ID == "" {
		w.ID = Unnamed(w.Stream, w.Seq, meta.Timestamp)
	}
	if to := h.Get(HeaderReply); CanPublish(to) && len(to) <= maxReply {
		w.Reply = to
	}
	w.Entry = EntryID(w.ID, w.Again)
	w.Headers, w.HeadersLeft = kept(h)
	return w, nil
}

// EntryID is the id, in an inbox, of a message that was requeued so often: the message's
// own id, then ID~1, ID~2, … An id that looks like one of those gets ~0, one that is long,
// that no inbox takes, or that begins with = is spelt as [Key], behind an = in any case.
func EntryID(id string, again int) string {
	if inbox.CheckID(id) != nil || len(id) > maxID || strings.HasPrefix(id, "=") {
		if id = Key(id); id[0] != '=' { // so that it is no message's own id
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

// CanPublish reports whether something can be published to a subject: words with dots
// between them, no wildcards, no spaces.
func CanPublish(subject string) bool {
	return subject != "" && !strings.ContainsAny(subject, " \t\r\n\x00*>") && !strings.HasPrefix(subject, ".") &&
		!strings.HasSuffix(subject, ".") && !strings.Contains(subject, "..")
}

// about is the member nats of an entry.
type about struct {
	Stream  string `json:"stream"`
	Seq     uint64 `json:"seq"`
	Subject string `json:"subject"`
	Copy    uint64 `json:"copy,omitempty"`
}

// InboxMessage is what the inbox gets. The error is a sentence that says why the message
// cannot be an entry; it is then a dead letter.
func (w *Message) InboxMessage() (inbox.Message, error) {
	if w.wrong != nil {
		return inbox.Message{}, w.wrong
	}
	m, err := w.parse()
	if err != nil {
		return m, err
	}
	m.ID = w.Entry
	if m.Metadata == nil {
		m.Metadata = map[string]any{}
	}
	m.Metadata[member] = about{w.Stream, w.Seq, w.Subject, w.Copy}
	return m, m.Check()
}

// parse takes a JSON object with a prompt for what a batch has as a line, and everything
// else for plain text.
func (w *Message) parse() (inbox.Message, error) {
	if hasPrompt(w.Data) {
		var line bytes.Buffer
		if err := json.Compact(&line, w.Data); err != nil {
			return inbox.Message{}, err
		}
		return inbox.ParseMessage(line.Bytes())
	}
	return inbox.Message{Text: string(w.Data)}, nil
}

// IsText reports whether the text of the entry, as a dead letter of the inbox has it, is the
// payload, byte for byte.
func (w *Message) IsText() bool { return len(w.Data) <= mostText && !hasPrompt(w.Data) }

func hasPrompt(data []byte) bool {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) || !utf8.Valid(data) {
		return false
	}
	// Not a struct, which would take PROMPT for it, as the inbox does not.
	var o map[string]json.RawMessage
	return json.Unmarshal(data, &o) == nil && bytes.HasPrefix(o["prompt"], []byte(`"`))
}

// CopyOf is which copy of a message an entry came from, by its metadata in a result or
// dead letter; 0 if that does not say.
func CopyOf(metadata map[string]json.RawMessage) uint64 {
	var a about
	if json.Unmarshal(metadata[member], &a) != nil {
		return 0
	}
	return a.Copy
}

const (
	// maxHeaders and maxHeaderBytes bound which headers of a message are kept for its dead
	// letter: the first ones, by their names.
	maxHeaders     = 100
	maxHeaderBytes = 16 << 10
)

// kept are the headers of a message that its sender gave it, as lines NAME:VALUE, and how
// many were left out.
func kept(h nats.Header) (lines [][]byte, left int) {
	all := make([]string, 0, len(h))
	for name := range h {
		if isSenders(name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	size := 0
	for _, name := range all {
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

// Restore gives a message the headers that were kept in lines. What is none that a sender
// gives is left out: who wrote the lines was an agent.
func Restore(h nats.Header, lines []string) {
	for _, line := range lines {
		name, value, found := strings.Cut(line, ":")
		if found && isSenders(name) && !strings.ContainsAny(value, "\r\n\x00") {
			h.Add(name, value)
		}
	}
}

// isSenders tells headers that the sender chose from those of JetStream, which would count
// once more, and from those that a requeued message is given anew.
func isSenders(name string) bool {
	switch name {
	case "", HeaderID, HeaderAgain, HeaderReply:
		return false
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' || c == ':' {
			return false
		}
	}
	const reserved = "nats-"
	return len(name) < len(reserved) || !bytes.EqualFold([]byte(name[:len(reserved)]), []byte(reserved))
}
