package inbox

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"heartbeat/internal/flat"
	"heartbeat/internal/lines"
)

// Entry is one line of the inbox, decoded.
type Entry struct {
	EntryID string // hex SHA-256 of the raw line, including a byte order mark
	ID      string // an envelope's own `id`, or ""
	Text    string // what is delivered: valid UTF-8, never empty
	// Metadata holds an envelope's members other than `prompt` and `id`. An `id` that is not a string, or
	// that [CheckID] refuses, is kept here.
	Metadata map[string]json.RawMessage
	// Start and End are the entry's byte range in the inbox. End is the start of the next line.
	Start, End int64
	// Attempt is the number that this delivery would have, counted from 1.
	Attempt int

	raw        []byte
	terminated bool
	textFile   string // see Delivery.TextFile
	detached   bool   // no longer in the inbox: see Delivery.Detached
	offer      *offer
	// The next three are as in Delivery; firstSeq is 0 before the first delivery.
	firstSeq int64
	spent    string
	took     time.Duration
}

// offer marks the entry that may be delivered: the one that the transaction returned last, if it has
// delivered nothing since. Only its address counts.
type offer struct{ _ byte }

// byteOrderMark is what some editors and shells put at the start of a file. It is never part of a line's
// content, wherever it occurs in the file.
var byteOrderMark = []byte("\uFEFF")

// blank reports whether a line is empty apart from white space.
func blank(l []byte) bool { return len(bytes.TrimSpace(bytes.TrimPrefix(l, byteOrderMark))) == 0 }

// expired reports whether the envelope's expires_at has passed.
func (e Entry) expired(now time.Time) bool {
	at := e.timeMember(expiresMember)
	return !at.IsZero() && now.After(at)
}

// Limits returns the envelope's cost limits, in the form that package price reads, nil for none.
func (e Entry) Limits() json.RawMessage { return e.Metadata[limitsMember] }

// Spent returns what the entry's earlier deliveries cost, as in [Delivery], and how long they were worked on.
func (e Entry) Spent() (cost string, took time.Duration) { return e.spent, e.took }

// timeMember returns a member that should be a time, zero if it is none.
func (e Entry) timeMember(member string) time.Time {
	at, _ := time.Parse(`"`+time.RFC3339+`"`, string(e.Metadata[member])) // zero after an error
	return at
}

// Raw returns the entry's line as it is in the inbox, without its end.
func (e Entry) Raw() RawLine { return rawLineOf(e.raw) }

// SentAt returns when `send` appended the entry; zero if the line has no such time.
func (e Entry) SentAt() time.Time { return e.timeMember(sentAtMember) }

// QueuedAt returns when `send` put the entry into the inbox, or when a scheduled entry was due; zero if the line has no
// such time.
func (e Entry) QueuedAt() time.Time {
	sent, due := e.SentAt(), e.timeMember(notBeforeMember)
	if !sent.IsZero() && due.After(sent) {
		return due
	}
	return sent
}

// decodeEntry never fails: a line that is neither a JSON string nor an envelope is delivered as it stands.
func decodeEntry(raw []byte) Entry {
	e := Entry{EntryID: entryID(raw), raw: raw, Attempt: 1, terminated: true}
	e.ID, e.Text, e.Metadata = decodeLine(raw)
	return e
}

func decodeLine(raw []byte) (id, text string, meta map[string]json.RawMessage) {
	raw = bytes.TrimPrefix(lines.Valid(raw), byteOrderMark)
	trimmed := bytes.TrimSpace(raw)
	switch {
	case len(trimmed) == 0:
	case trimmed[0] == '"':
		if json.Unmarshal(trimmed, &text) == nil {
			return "", text, nil
		}
	case trimmed[0] == '{':
		if id, text, meta, ok := decodeEnvelope(trimmed); ok {
			return id, text, meta
		}
	}
	return "", string(raw), nil
}

func decodeEnvelope(raw []byte) (id, text string, meta map[string]json.RawMessage, ok bool) {
	m, err := flat.Parse(raw)
	if err != nil || !m.IsString(promptMember) || flat.TooDeep(raw) {
		return "", "", nil, false
	}
	decoded := []string{promptMember}
	if own := m.String(idMember); m.IsString(idMember) && CheckID(own) == nil {
		id, decoded = own, append(decoded, idMember)
	}
	m.Without(decoded, func(name string, raw []byte) {
		if meta == nil {
			meta = map[string]json.RawMessage{}
		}
		meta[name] = raw
	})
	return id, m.String(promptMember), meta, true
}

// Members of an envelope that heartbeat itself reads or writes.
const (
	idMember        = "id"
	promptMember    = "prompt"
	sentAtMember    = "sent_at"
	notBeforeMember = "not_before"
	expiresMember   = "expires_at"
	limitsMember    = "limits"
	checkMember     = "check"
)

// ownMembers are all of these: a sender's metadata has other names.
var ownMembers = []string{idMember, promptMember, sentAtMember, notBeforeMember, expiresMember, limitsMember, checkMember}

// RawLine is an entry's line, without its line end. Base64 has the exact bytes if Text has U+FFFD in place of some.
type RawLine struct {
	Text   string `json:"raw_line"`
	Base64 string `json:"raw_base64,omitempty"`
}

func rawLineOf(b []byte) RawLine {
	if utf8.Valid(b) {
		return RawLine{Text: string(b)}
	}
	return RawLine{Text: string(lines.Valid(b)), Base64: base64.StdEncoding.EncodeToString(b)}
}

// Bytes returns the exact line.
func (r RawLine) Bytes() ([]byte, error) {
	if r.Base64 == "" {
		return []byte(r.Text), nil
	}
	b, err := base64.StdEncoding.DecodeString(r.Base64)
	if err != nil {
		return nil, fmt.Errorf("raw_base64: %w", err)
	}
	return b, nil
}

// exact returns the exact line, or its readable form if somebody broke the Base64.
func (r RawLine) exact() []byte {
	raw, err := r.Bytes()
	if err != nil {
		return []byte(r.Text)
	}
	return raw
}

// wideMessage is the message of a wide line's dead letter.
const wideMessage = "it is a line of UTF-16 or UTF-32, as PowerShell's > and >> write it, or stands in an inbox that begins so: " +
	"save the text as UTF-8 and send that, or send the file: `heartbeat send --batch FILE --format lines` reads one that begins with a byte order mark"

// wide reports whether a line is part of UTF-16 or UTF-32. Such a line must not be delivered: the byte of a line break
// also occurs inside other characters, so the file splits in wrong places, and the agent might read something else. The
// fragments may be plain letters: in a file that begins with such a byte order mark, only JSON certainly is no
// fragment.
func (t *Tx) wide(raw []byte) bool {
	zeros := bytes.Count(raw, []byte{0})
	switch text := bytes.TrimSpace(raw); {
	case wideMark(raw):
		return true
	case zeros == 0 && len(text) > 0 && (text[0] == '{' || text[0] == '"') && utf8.Valid(raw):
		return false
	case t.beginsWide():
		return true
	case zeros == 0:
		return false
	}
	for i, c := range raw {
		if c == 0 && i%2 == 0 {
			return false
		}
	}
	return len(raw)%2 == 0 && (4*zeros >= len(raw) || bytes.HasSuffix(raw, []byte("\r\x00")))
}

// beginsWide reports whether the inbox itself begins with such a byte order mark.
func (t *Tx) beginsWide() bool {
	var first [4]byte
	n, _ := t.file.ReadAt(first[:], 0) // a shorter file has no such mark
	return wideMark(first[:n])
}

// wideMark reports whether bytes begin with the byte order mark of UTF-16 or UTF-32.
func wideMark(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte{0, 0})
	return len(b) >= 2 && (b[0] == 0xFF && b[1] == 0xFE || b[0] == 0xFE && b[1] == 0xFF)
}

// entryID names an entry by its line, without the line end.
func entryID(raw []byte) string { return lines.ID(raw) }
