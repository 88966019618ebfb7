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

	"heartbeat/internal/disk"
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
}

// Append adds one entry at the end of the inbox, which it creates with mode
// 0600 if need be. After nil the entry survives a power loss. After an error it
// may be there or not: with an ID, appending again is safe.
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
	f, created, err := b.appendLine(ctx, &r, line, named, settle)
	if err != nil || !r.Appended {
		return r, err
	}
	// Synced without the lock, so that many senders share one flush.
	err = f.Sync()
	if err == nil && created {
		err = disk.SyncDir(b.dir)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return r, fmt.Errorf("append to inbox %s at %d: written, but it may not survive a power loss: %w", b.path, r.Start, err)
	}
	return r, nil
}

func (b *Inbox) appendLine(ctx context.Context, r *Receipt, line []byte, named bool, settle time.Duration) (f *disk.File, created bool, err error) {
	var still Mark
	for {
		tx, err := b.Begin(ctx)
		if err != nil {
			return nil, false, err
		}
		f, created, err = tx.appendLine(r, line, named, still)
		err = errors.Join(err, tx.Close())
		if !errors.Is(err, ErrTorn) {
			return f, created, err
		}
		if still, err = b.AwaitStill(ctx, settle); err != nil {
			return nil, false, err
		}
	}
}

func (t *Tx) appendLine(r *Receipt, line []byte, named bool, still Mark) (*disk.File, bool, error) {
	if named {
		found, err := t.find(r.ID)
		if err != nil || found != "" {
			r.Found = found
			return nil, false, err
		}
	}
	torn, err := t.tornTail()
	if err != nil {
		return nil, false, err
	}
	if torn && still != t.mark() {
		return nil, false, ErrTorn
	}
	if t.st.Seq == 0 {
		t.dirty = true // from now on the directory is this inbox's
	}
	if err := t.Commit(); err != nil {
		return nil, false, err
	}
	f, created, err := disk.OpenAppend(t.box.path)
	if err != nil {
		return nil, false, fmt.Errorf("append: %w", err)
	}
	data := append(slices.Clone(line), '\n')
	if torn {
		data = append([]byte("\n"), data...)
	}
	at, err := f.Append(data)
	if err != nil {
		err = errors.Join(fmt.Errorf("append to inbox %s: nothing was appended: %w", t.box.path, err), takeBack(f, data), f.Close())
		return nil, false, err
	}
	r.End = at + int64(len(data))
	r.Start = r.End - int64(len(line)) - 1
	r.Appended = true
	return f, created, nil
}

// takeBack removes the part of data that reached the end of the file before
// the write failed. Where somebody else appended since, it stays.
func takeBack(f *disk.File, data []byte) error {
	before := f.Info().Size
	info, err := f.Stat()
	if err != nil || info.Size == before {
		return err
	}
	part := make([]byte, info.Size-before)
	if _, err := f.ReadAt(part, before); err != nil || !bytes.HasPrefix(data, part) {
		return err
	}
	if err := f.Truncate(before); err != nil {
		return err
	}
	return f.Touch() // or the file would look as if it had been written anew
}

func (t *Tx) tornTail() (bool, error) {
	if t.size() == 0 {
		return false, nil
	}
	last := make([]byte, 1)
	if _, err := t.file.ReadAt(last, t.size()-1); err != nil {
		return false, fmt.Errorf("read inbox: %w", err)
	}
	return last[0] != '\n', nil
}

func (m Message) encode() ([]byte, error) {
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
