package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"heartbeat/internal/host"
)

// Message is what a producer appends. Only Text is required.
type Message struct {
	// ID names the entry, and makes appending it twice append it once. Where it
	// is empty, a random one is made.
	ID string
	// Text is what is delivered: UTF-8, with something in it beside spaces.
	Text string
	// Metadata travels with the entry into its result or dead letter. The
	// names id and prompt are taken.
	Metadata map[string]string
}

// Receipt says where an appended message is.
type Receipt struct {
	ID      string `json:"id"`
	EntryID string `json:"entry_id"`
	// Start and End are its byte range in the inbox, both 0 if not Appended.
	Start int64 `json:"start_offset"`
	End   int64 `json:"end_offset"`
	// Appended is false when an entry of that ID was there before.
	Appended bool `json:"appended"`
	// Found says where: "queued", "in flight" or "answered".
	Found string `json:"found,omitempty"`
	// Warnings are sentences about what was found and mended besides.
	Warnings []string `json:"warnings,omitempty"`
}

// Append adds one entry at the end of the inbox, which it creates with mode
// 0600 if need be. After nil the entry survives a power loss; after an error
// nothing was appended, unless the error matches [ErrUncertain].
//
// A last line that lacks its newline gets one, once it has stood still for
// settle, so that the entry never melts into it.
func (b *Inbox) Append(ctx context.Context, m Message, settle time.Duration) (Receipt, error) {
	named := m.ID != ""
	if !named {
		id, err := host.RandomName()
		if err != nil {
			return Receipt{}, fmt.Errorf("append: %w", err)
		}
		m.ID = id
	}
	line, err := m.encode()
	if err != nil {
		return Receipt{}, err
	}
	r := Receipt{ID: m.ID, EntryID: entryID(line)}
	for still := (Mark{}); ; {
		err := b.appendLine(ctx, &r, line, named, still)
		if !errors.Is(err, ErrTorn) {
			return r, err
		}
		if still, err = b.AwaitStill(ctx, settle); err != nil {
			return r, err
		}
	}
}

func (b *Inbox) appendLine(ctx context.Context, r *Receipt, line []byte, named bool, still Mark) (err error) {
	t, err := b.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()); r.Warnings = t.Warnings() }()
	if named {
		if r.Found, err = t.find(r.ID); err != nil || r.Found != "" {
			return err
		}
	}
	torn, err := t.tornTail()
	if err != nil {
		return err
	}
	if torn && still != t.mark() {
		return ErrTorn
	}
	if t.file == nil && t.st.Cursor > 0 {
		t.startOver()
	}
	t.append(queueName, line)
	if err := t.Commit(); err != nil {
		return fmt.Errorf("append to inbox %s: %w", b.path, err)
	}
	r.Start, r.End, r.Appended = t.appendedEnd-int64(len(line))-1, t.appendedEnd, true
	return nil
}

func (t *Tx) tornTail() (bool, error) {
	if t.file == nil {
		return false, nil
	}
	whole, err := endsLine(t.file, t.size())
	if err != nil {
		return false, fmt.Errorf("read inbox: %w", err)
	}
	return !whole, nil
}

func (m Message) encode() ([]byte, error) {
	for name, value := range m.Metadata {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return nil, fmt.Errorf("append: metadata %q=%q is not UTF-8", name, value)
		}
	}
	if !utf8.ValidString(m.ID) {
		return nil, fmt.Errorf("append: the id %q is not UTF-8", m.ID)
	}
	if i := firstInvalid(m.Text); i >= 0 {
		return nil, fmt.Errorf("append: the text is not UTF-8 (byte %d): convert it first, so that nothing of it is changed on the way", i)
	}
	if strings.TrimSpace(m.Text) == "" {
		return nil, errors.New("append: the text is empty: there is nothing to deliver")
	}
	members := make([]string, 0, len(m.Metadata))
	for name := range m.Metadata {
		if name == "id" || name == "prompt" || name == "" {
			return nil, fmt.Errorf("append: metadata cannot be named %q", name)
		}
		members = append(members, name)
	}
	slices.Sort(members)
	var b bytes.Buffer
	for _, kv := range append([][2]string{{"id", m.ID}, {"prompt", m.Text}}, pairs(members, m.Metadata)...) {
		name, err := encodeJSON(kv[0])
		if err != nil {
			return nil, err
		}
		value, err := encodeJSON(kv[1])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, ",%s:%s", name, value)
	}
	line := append([]byte("{"), append(b.Bytes()[1:], '}')...)
	if len(line) > MaxLine {
		return nil, fmt.Errorf("append: the entry is %d bytes long, and %d is the most: put the text into a file and send its name", len(line), MaxLine)
	}
	return line, nil
}

func pairs(names []string, values map[string]string) [][2]string {
	kv := make([][2]string, len(names))
	for i, n := range names {
		kv[i] = [2]string{n, values[n]}
	}
	return kv
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
