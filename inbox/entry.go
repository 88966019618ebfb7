package inbox

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"heartbeat/internal/budget"
	"heartbeat/internal/flat"
	"heartbeat/internal/price"
)

// Entry is one line of the inbox, decoded.
type Entry struct {
	EntryID string // hex SHA-256 of the raw line, a byte order mark included
	ID      string // an envelope's own `id`; empty where it has none
	Text    string // what is delivered: valid UTF-8, never empty
	// Metadata holds an envelope's members beside `prompt` and `id`; also an `id` that is no
	// string, or that [CheckID] refuses.
	Metadata map[string]json.RawMessage
	// Start and End are the entry's byte range in the inbox; End is the start
	// of the next line.
	Start, End int64
	// Attempt is which delivery this would be, counted from 1.
	Attempt int

	raw        []byte
	terminated bool
	textFile   string // see Delivery.TextFile
	detached   bool   // no longer in the inbox: see Delivery.Detached
	offer      *offer
	// See Delivery. firstSeq is 0 before the first delivery.
	firstSeq     int64
	spent        price.Amount
	spentDivided bool
	took         time.Duration
}

// offer marks an entry that may be delivered: the transaction returned it last,
// and has delivered nothing since. Only its address counts.
type offer struct{ _ byte }

// byteOrderMark is what some editors and shells put at the start of a file. It is
// never part of a line's content, wherever in the file it is.
var byteOrderMark = []byte("\uFEFF")

// blank reports whether a line has nothing in it.
func blank(l []byte) bool { return len(bytes.TrimSpace(bytes.TrimPrefix(l, byteOrderMark))) == 0 }

// expired reports whether the envelope says that it is too late to deliver the
// entry.
func (e Entry) expired(now time.Time) bool {
	at := e.timeMember(expiresMember)
	return !at.IsZero() && now.After(at)
}

// Limits are what the envelope says that the entry may cost. An error says which of it
// cannot be understood; such an entry is never delivered.
func (e Entry) Limits() (budget.Limits, error) { return budget.Parse(e.Metadata[limitsMember]) }

// timeMember reads a member that should be a time; it is zero if it is none.
func (e Entry) timeMember(member string) time.Time {
	raw, ok := e.Metadata[member]
	if !ok {
		return time.Time{}
	}
	at, err := time.Parse(`"`+time.RFC3339+`"`, string(raw))
	if err != nil {
		return time.Time{}
	}
	return at
}

// decodeEntry never fails: a line that is neither a JSON string nor an envelope
// is delivered as it stands.
func decodeEntry(raw []byte) Entry {
	e := Entry{EntryID: entryID(raw), raw: raw, Attempt: 1, terminated: true}
	e.ID, e.Text, e.Metadata = decodeLine(raw)
	return e
}

func decodeLine(raw []byte) (id, text string, meta map[string]json.RawMessage) {
	if !utf8.Valid(raw) {
		raw = []byte(toUTF8(raw))
	}
	raw = bytes.TrimPrefix(raw, byteOrderMark)
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
	if err != nil || !m.IsString("prompt") || flat.TooDeep(raw) {
		return "", "", nil, false
	}
	taken := []string{"prompt"}
	if said := m.String(idMember); m.IsString(idMember) && CheckID(said) == nil {
		id, taken = said, append(taken, idMember)
	}
	m.Without(taken, func(name string, raw []byte) {
		if meta == nil {
			meta = map[string]json.RawMessage{}
		}
		meta[name] = raw
	})
	return id, m.String("prompt"), meta, true
}

// Members of an envelope that heartbeat itself reads or writes.
const (
	idMember        = "id"
	promptMember    = "prompt"
	sentAtMember    = "sent_at"
	notBeforeMember = "not_before"
	expiresMember   = "expires_at"
	limitsMember    = "limits"
)
