package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// Message is what a producer appends. Only Text is required.
type Message struct {
	// ID names the entry; appending the same ID twice appends one entry. If it is empty, a random one is made.
	ID string
	// Text is what is delivered: UTF-8, with more than white space.
	Text string
	// Metadata travels with the entry into its result or dead letter. Values may be anything that encoding/json can
	// encode. The names id, prompt, sent_at, not_before, expires_at, limits and check are taken.
	Metadata map[string]any
	// NotBefore, unless zero or past, keeps the entry out of the inbox until then: see [Scheduled].
	NotBefore time.Time
	// Expires, unless zero, is the time after which the entry is not delivered any more: it then becomes a
	// dead letter with [ReasonExpired].
	Expires time.Time
	// Limits bounds the cost of all the entry's attempts together. At the limit the entry becomes a dead
	// letter with [ReasonOverBudget]. Package budget defines the format.
	Limits json.RawMessage
	// Checks names the checks that the entry must pass before it counts as answered, in place of the wiring's
	// own; empty for the wiring's.
	Checks []string
}

// ParseMessage reads one line of a batch: a JSON string, or an object with a string `prompt` and, optionally,
// `id`, `not_before` and `expires_at` (RFC 3339), `limits` (see package price) and `check` (a name, or a
// list of names). Its other members are metadata.
func ParseMessage(line []byte) (Message, error) {
	var m Message
	line = bytes.TrimPrefix(line, byteOrderMark)
	if !utf8.Valid(line) {
		return m, errors.New("it is not UTF-8")
	}
	if bytes.HasPrefix(bytes.TrimSpace(line), []byte(`"`)) {
		if err := json.Unmarshal(line, &m.Text); err != nil {
			return m, fmt.Errorf("it is not a JSON string: %w", err)
		}
		return m, nil
	}
	o, err := flat.Parse(line)
	if err != nil {
		return m, fmt.Errorf("%w: a JSON string or an object with a prompt is needed", err)
	}
	if !o.IsString(promptMember) {
		return m, errors.New("it has no string named prompt")
	}
	if flat.TooDeep(line) {
		return m, errors.New("it is nested too deeply")
	}
	if o.IsString(idMember) && o.String(idMember) == "" {
		return m, errors.New("its id is empty: name the entry, or leave the member out")
	}
	m.ID, m.Text = o.String(idMember), o.String(promptMember)
	m.NotBefore, m.Expires = o.Time(notBeforeMember), o.Time(expiresMember)
	m.Limits = o.Raw(limitsMember)
	if o.Has(checkMember) {
		if m.Checks, err = parseChecks(o.Raw(checkMember)); err != nil {
			return m, err
		}
	}
	o.Without(ownMembers, func(name string, raw []byte) {
		if m.Metadata == nil {
			m.Metadata = map[string]any{}
		}
		m.Metadata[name] = json.RawMessage(raw)
	})
	return m, o.Err()
}

// CheckID returns an error for an id that cannot be printed as it is: logs, tables and commands name entries by id. In
// a line written by hand such an id is ignored.
func CheckID(id string) error {
	if !utf8.ValidString(id) {
		return fmt.Errorf("the id %q is not UTF-8", id)
	}
	for _, r := range id {
		if !strconv.IsPrint(r) {
			return fmt.Errorf("the id %q has the character %U, which cannot be printed: an id takes letters, digits, signs and blanks, on one line", id, r)
		}
	}
	return nil
}

// Check returns an error if the message cannot be appended.
func (m Message) Check() error {
	_, err := m.encode(time.Time{})
	return err
}

func (m Message) encode(now time.Time) ([]byte, error) {
	if err := CheckID(m.ID); err != nil {
		return nil, err
	}
	if i := firstInvalid(m.Text); i >= 0 {
		return nil, fmt.Errorf("the text is not UTF-8 (byte %d): convert it first, so that nothing of it is changed on the way", i)
	}
	if strings.TrimSpace(m.Text) == "" {
		return nil, errors.New("the text is empty: there is nothing to deliver")
	}
	if n := escapedLength(m.Text); n > MaxLine { // escaping may multiply it by six
		return nil, tooLongToSend(n)
	}
	var o flat.Object
	for _, member := range [][2]string{{idMember, m.ID}, {promptMember, m.Text}} {
		value, err := flat.JSON(member[1])
		if err != nil {
			return nil, err
		}
		o.Raw(member[0], value)
	}
	o.Time(sentAtMember, now)
	for _, at := range []struct {
		name string
		time time.Time
	}{{notBeforeMember, m.NotBefore}, {expiresMember, m.Expires}} {
		if at.time.IsZero() {
			continue
		}
		if _, err := at.time.MarshalText(); err != nil {
			return nil, fmt.Errorf("append: %s %s cannot be written as RFC 3339: its year has four digits", at.name, at.time)
		}
		o.Time(at.name, at.time)
	}
	if m.Limits != nil {
		if !json.Valid(m.Limits) {
			return nil, errors.New("append: the limits are not JSON")
		}
		o.Raw(limitsMember, m.Limits)
	}
	if len(m.Checks) > 0 {
		checks, err := checksJSON(m.Checks)
		if err != nil {
			return nil, err
		}
		o.Raw(checkMember, checks)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Metadata)) {
		value, err := encodeMember(name, m.Metadata[name])
		if err != nil {
			return nil, err
		}
		o.Raw(name, value)
	}
	line := bytes.Clone(o.End()) // a batch keeps all its lines, and o has room for a journal record
	if len(line) > MaxLine {
		return nil, tooLongToSend(len(line))
	}
	return line, nil
}

func tooLongToSend(n int) error {
	return fmt.Errorf("the entry is %d bytes long, and %d is the most: put the text into a file and send its name", n, MaxLine)
}

// escapedLength returns the number of bytes that the text takes in JSON, or a smaller one.
func escapedLength(text string) int {
	n := len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\' || c >= '\b' && c <= '\r' && c != '\v':
			n++
		case c < ' ':
			n += len(`\u0000`) - 1
		}
	}
	return n
}

func encodeMember(name string, v any) ([]byte, error) {
	if name == "" || slices.Contains(ownMembers, name) {
		return nil, fmt.Errorf("metadata cannot be named %q", name)
	}
	if s, ok := v.(string); !utf8.ValidString(name) || ok && !utf8.ValidString(s) {
		return nil, fmt.Errorf("metadata %q=%q is not UTF-8", name, v)
	}
	value, err := flat.JSON(v)
	if err != nil {
		return nil, fmt.Errorf("metadata %q: %w", name, err)
	}
	return value, nil
}

func firstInvalid(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if _, size := utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && size == 1 {
			return i
		}
	}
	return -1
}

// Receipt is where an appended message is.
type Receipt struct {
	ID        string     `json:"id"`
	EntryID   string     `json:"entry_id"`
	Start     int64      `json:"start_offset"` // 0 if it is not in the inbox
	End       int64      `json:"end_offset"`   // 0 if it is not in the inbox
	Appended  bool       `json:"appended"`
	NotBefore *time.Time `json:"not_before,omitempty"`
	Found     string     `json:"found,omitempty"` // where it was: "scheduled", "queued", "in flight" or "answered"
	Warnings  []string   `json:"warnings,omitempty"`

	// The outcome files as they were when the entry was appended. Its own outcome lies behind that.
	results, deadLetters journal.Seen
}

// Before returns the parts of results and dead letters that cannot hold the entry's outcome, none if it was answered.
func (r Receipt) Before() (results, deadLetters journal.Seen) {
	if r.Found == FoundAnswered {
		return journal.Seen{}, journal.Seen{}
	}
	return r.results, r.deadLetters
}

// Where the entry of a Receipt was found.
const (
	FoundScheduled = "scheduled"
	FoundQueued    = "queued"
	FoundInFlight  = "in flight"
	FoundAnswered  = "answered"
)
