package inbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/testing/long"
)

func send(t testing.TB, box *inbox.Inbox, m inbox.Message) inbox.Receipt {
	t.Helper()
	r, err := box.Append(context.Background(), m, 0)
	require.NoError(t, err)
	return r
}

func TestAppendIsDelivered(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]inbox.Message{
		"text":          {Text: "hello"},
		"lines":         {Text: "two\nlines\r\n\t"},
		"quotes":        {Text: `a "quoted" \ back`},
		"looks encoded": {Text: `"unwrapped?"`},
		"an envelope":   {Text: `{"prompt":"inner","id":"inner"}`},
		"control":       {Text: "a\x00\x01\x7f\u0085\u2028\u2029\ufeffb"},
		"emoji":         {Text: "😀 é \U0010ffff"},
		"html":          {Text: "<b>&amp;</b>"},
		"replacement":   {Text: "a\ufffdb"},
		"with id":       {Text: "x", ID: "job-7"},
		"id of quotes":  {Text: "x", ID: "a \"b\" \\ é <&>"},
		"metadata":      {Text: "x", Metadata: map[string]any{"a": "1", "é \"<\"": "\n", "Prompt": "p", "ID": "i"}},
		"large":         {Text: strings.Repeat("é\"", 100<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "before\n")
			r := send(t, box, m)
			assert.True(t, r.Appended)
			assert.Empty(t, r.Found)
			require.Equal(t, "before", turn(t, box))
			acknowledge(t, box, "done")
			e, err := next(t, box)
			require.NoError(t, err)
			assert.Equal(t, m.Text, e.Text)
			assert.Equal(t, r.ID, e.ID)
			if m.ID != "" {
				assert.Equal(t, m.ID, r.ID)
			}
			assert.Equal(t, r.EntryID, e.EntryID)
			assert.Equal(t, []int64{e.Start, e.End}, []int64{r.Start, r.End})
			assert.Equal(t, noon, e.SentAt())
			assert.Len(t, e.Metadata, len(m.Metadata)+1)
			for name, value := range m.Metadata {
				var got string
				require.NoError(t, json.Unmarshal(e.Metadata[name], &got))
				assert.Equal(t, value, got)
			}
			assert.Equal(t, 2, strings.Count(read(t, box.Path()), "\n"), "one line each")
		})
	}
}

func TestAppendMakesTheInbox(t *testing.T) {
	box := open(t, filepath.Join(t.TempDir(), "inbox.jsonl"))
	send(t, box, inbox.Message{Text: "first"})
	info, err := os.Stat(box.Path())
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	assert.Equal(t, []string{"first"}, drain(t, box))
}

// A message that cannot become an entry is refused in a sentence, and nothing changes.
func TestAppendRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		m    inbox.Message
		says string
	}{
		"no text":                {inbox.Message{}, "empty"},
		"blank text":             {inbox.Message{Text: " \n\u00a0"}, "empty"},
		"invalid UTF-8":          {inbox.Message{Text: "caf\xe9"}, "not UTF-8 (byte 3)"},
		"invalid, after U+FFFD":  {inbox.Message{Text: "\ufffd\xff"}, "not UTF-8 (byte 3)"},
		"id is not UTF-8":        {inbox.Message{Text: "x", ID: "caf\xe9"}, "UTF-8"},
		"id of two lines":        {inbox.Message{Text: "x", ID: "a\nb"}, `"a\nb" has the character U+000A, which cannot be printed`},
		"id with an escape":      {inbox.Message{Text: "x", ID: "\x1b[2J"}, "U+001B"},
		"id that runs backwards": {inbox.Message{Text: "x", ID: "a\u202eb"}, "U+202E"},
		"metadata id":            {inbox.Message{Text: "x", Metadata: map[string]any{"id": "1"}}, `"id"`},
		"metadata prompt":        {inbox.Message{Text: "x", Metadata: map[string]any{"prompt": "1"}}, `"prompt"`},
		"metadata no name":       {inbox.Message{Text: "x", Metadata: map[string]any{"": "1"}}, `""`},
		"metadata name's UTF-8":  {inbox.Message{Text: "x", Metadata: map[string]any{"caf\xe9": "1"}}, "UTF-8"},
		"metadata value's UTF-8": {inbox.Message{Text: "x", Metadata: map[string]any{"a": "caf\xe9"}}, "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			before := snapshot(t, box)
			_, err := box.Append(context.Background(), c.m, 0)
			require.ErrorContains(t, err, c.says)
			assert.Equal(t, before, snapshot(t, box))
		})
	}
}

func TestAppendTooLong(t *testing.T) {
	long.Only(t, "64 MiB")
	box := newBox(t, "")
	const around = len(`{"id":"i","prompt":"","sent_at":"2026-03-04T12:00:00.123456789Z"}`)
	_, err := box.Append(context.Background(), inbox.Message{ID: "i", Text: strings.Repeat("x", inbox.MaxLine-around+1)}, 0)
	require.ErrorContains(t, err, "67108864 is the most")
	assert.Empty(t, read(t, box.Path()))
	send(t, box, inbox.Message{ID: "i", Text: strings.Repeat("x", inbox.MaxLine-around)})
	assert.Len(t, textBeside(t, box, deliver(t, box)), inbox.MaxLine-around)
}

// Appending again is safe: a known id is found and not appended.
func TestAppendTwice(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{
		"plain": "job-7", "JSON escapes": "a\"b\\c/<&>", "non-ASCII": "jöb 😀", "spaces": " a ", "long": strings.Repeat("i", 600<<10),
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "")
			m := inbox.Message{ID: id, Text: "x"}
			for _, c := range []struct {
				found string
				then  func()
			}{
				{"queued", func() { deliver(t, box) }},
				{"in flight", func() {
					in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
				}},
				{"queued", func() { deliver(t, box); acknowledge(t, box, "done") }},
				{"answered", func() { require.NoError(t, os.Truncate(box.Path(), 0)) }},
				{"answered", func() {}},
			} {
				first := send(t, box, m)
				if first.Appended {
					first = send(t, box, m)
				}
				assert.Equal(t, inbox.Receipt{ID: id, EntryID: first.EntryID, Start: first.Start, End: first.End, Found: c.found}, withoutWarnings(first))
				c.then()
			}
			assert.Len(t, results(t, box), 1)
		})
	}
}

// withoutWarnings also drops the internal members.
func withoutWarnings(r inbox.Receipt) inbox.Receipt {
	return inbox.Receipt{ID: r.ID, EntryID: r.EntryID, Start: r.Start, End: r.End, Appended: r.Appended, Found: r.Found}
}

// A raw writer may have given the id, in any spelling that JSON allows.
func TestAppendFindsIdsOfRawWriters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line  string
		found string
	}{
		"as we write it":     {`{"id":"é1","prompt":"x"}`, "queued"},
		"escaped":            {`{"id":"\u00e9\u0031","prompt":"x"}`, "queued"},
		"after other things": {`{"m":{"id":"z"},"prompt":"x","id":"é1"}`, "queued"},
		"CRLF":               {"{\"id\":\"é1\",\"prompt\":\"x\"}\r", "queued"},
		"long line":          {`{"id":"é1","prompt":"` + strings.Repeat("x", 600<<10) + `"}`, "queued"},
		"in the text":        {`{"id":"z","prompt":"é1"}`, ""},
		"in metadata":        {`{"id":"z","prompt":"x","m":{"id":"é1"}}`, ""},
		"no envelope":        {`{"id":"é1"}`, ""},
		"longer id":          {`{"id":"é12","prompt":"x"}`, ""},
		"verbatim":           {`é1`, ""},
		"overridden":         {`{"id":"é1","prompt":"x","id":"z"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "first\n"+c.line+"\n")
			text := "x"
			if name == "long line" {
				text = strings.Repeat("x", 600<<10)
			}
			r := send(t, box, inbox.Message{ID: "é1", Text: text})
			assert.Equal(t, c.found, r.Found)
			assert.Equal(t, c.found == "", r.Appended)
		})
	}
}

// A set-aside entry may be sent again.
func TestAppendAfterDeadLetter(t *testing.T) {
	box := newBox(t, "")
	send(t, box, inbox.Message{ID: "i", Text: "x"})
	deliver(t, box)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.DeadLetter(inbox.ReasonOrphaned)) })
	assert.True(t, send(t, box, inbox.Message{ID: "i", Text: "x"}).Appended)
}

// A last line without its newline gets one, once nobody writes to it any more.
func TestAppendToATornTail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tail string
		want []string
	}{
		"text":     {"torn", []string{"torn", "x"}},
		"envelope": {`{"prompt":"torn"}`, []string{"torn", "x"}},
		"half":     {`{"prompt":"to`, []string{`{"prompt":"to`, "x"}},
		"blank":    {"  ", []string{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "one\n"+c.tail)
			send(t, box, inbox.Message{Text: "x"})
			assert.Equal(t, append([]string{"one"}, c.want...), drain(t, box))
			assert.Empty(t, deadLetters(t, box))
		})
	}
}

// While somebody writes a line, Append waits, since its own text would become part of that line.
// Its context ends the wait.
func TestAppendWaitsForATornTail(t *testing.T) {
	box := newBox(t, "torn")
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	_, err := box.Append(ctx, inbox.Message{Text: "x"}, time.Hour)
	require.ErrorIs(t, err, why)
	assert.Equal(t, "torn", read(t, box.Path()))

	done := make(chan error, 1)
	go func() {
		_, err := box.Append(context.Background(), inbox.Message{Text: "x"}, 1000*time.Hour)
		done <- err
	}()
	echo(t, box.Path(), " no more\n")
	require.NoError(t, <-done)
	assert.Equal(t, []string{"torn no more", "x"}, drain(t, box))
}

// Once committed, an entry counts as appended: if the inbox cannot be written now, the next
// transaction writes it, once.
func TestAppendStandsWhenTheInboxCannotFollow(t *testing.T) {
	box := newBox(t, "one\n")
	disk.TestOnlyObserver = func(op disk.Op) error {
		if op.Kind == disk.OpWrite && op.Path == box.Path() {
			return unix.ENOSPC
		}
		return nil
	}
	defer func() { disk.TestOnlyObserver = nil }()
	r, err := box.Append(context.Background(), inbox.Message{ID: "i", Text: "two"}, 0)
	disk.TestOnlyObserver = nil
	require.NoError(t, err)
	assert.True(t, r.Appended)
	assert.Len(t, r.Warnings, 1)
	assert.Equal(t, "one\n", read(t, box.Path()))
	assert.Equal(t, int64(4), r.Start)
	assert.Equal(t, "queued", send(t, box, inbox.Message{ID: "i", Text: "two"}).Found)
	assert.Equal(t, r.End, fileSize(t, box.Path()))
	assert.Equal(t, []string{"one", "two"}, drain(t, box))
}
