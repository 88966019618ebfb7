package inbox_test

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// zeros are what a copied hole or a power loss leaves in place of text.
func zeros(n int) string { return strings.Repeat("\x00", n) }

// Zeros at the start of a line do not belong to an entry, and are reported. Zeros inside a line belong to it.
func TestZerosAreSkipped(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    []string
		note    bool
	}{
		"before a line":           {zeros(38160) + "one\ntwo\n", []string{"one", "two"}, true},
		"between two":             {"one\n" + zeros(5) + "two\n", []string{"one", "two"}, false},
		"more than a chunk":       {zeros(300<<10) + "one\n", []string{"one"}, true},
		"a line of them":          {zeros(9) + "\n\none\n", []string{"one"}, true},
		"at the end":              {"one\n" + zeros(9), []string{"one"}, false},
		"at the end of an object": {"{\"prompt\":\"one\"}\n" + zeros(70<<10) + "\n", []string{"one"}, false},
		"amid a line":             {"o" + zeros(2) + "ne\n", []string{"o\x00\x00ne"}, false},
		"nothing else":            {zeros(4096), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, c.content)
			assert.Equal(t, int64(len(c.want)), backlog(t, box).Entries)
			var noted []string
			in(t, box, func(tx *inbox.Tx) {
				_, err := tx.Next(still(t, box))
				if len(c.want) == 0 {
					require.ErrorIs(t, err, inbox.ErrEmpty)
				} else {
					require.NoError(t, err)
				}
				noted = tx.Warnings()
			})
			assert.Equal(t, c.note, strings.Contains(strings.Join(noted, ""), "zero bytes before offset"), "%q", noted)
			assert.Equal(t, c.want, drain(t, box))
			assert.Empty(t, deadLetters(t, box))
		})
	}
}

// An entry behind zeros has the offset and the id of its own bytes, for every reader.
func TestEntryBehindZeros(t *testing.T) {
	const line = `{"id":"job","prompt":"x"}`
	box := newBox(t, zeros(5000)+line+"\n")
	v := viewOf(t, box)
	waiting, err := v.Next(9)
	require.NoError(t, err)
	require.Len(t, waiting, 1)
	where, err := v.Find("job")
	require.NoError(t, err)
	assert.Equal(t, inbox.FoundQueued, where["job"])
	e := deliver(t, box)
	for _, e := range []inbox.Entry{e, waiting[0].Entry} {
		assert.Equal(t, sha256Hex(line), e.EntryID)
		assert.Equal(t, "x", e.Text)
		assert.Equal(t, int64(5000), e.Start)
		assert.Equal(t, int64(5000+len(line)+1), e.End)
	}
	r := send(t, box, inbox.Message{ID: "job", Text: "x"})
	assert.False(t, r.Appended)
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.GiveBack("", true)) })
	assert.Equal(t, e.Start, deliver(t, box).Start)
}

// Text that is appended behind zeros is a separate entry.
func TestAppendBehindZeros(t *testing.T) {
	box := newBox(t, "one\n"+zeros(100))
	send(t, box, inbox.Message{Text: "two"})
	assert.Equal(t, []string{"one", "two"}, drain(t, box))
}

// Reading a sparse file takes only as long as its data: nobody waits for the zeros of a hole.
func TestSparseInbox(t *testing.T) {
	box := newBox(t, "one\n")
	require.NoError(t, os.Truncate(box.Path(), 1<<40))
	assert.Equal(t, []string{"one"}, drain(t, box))
	_, err := next(t, box)
	require.ErrorIs(t, err, inbox.ErrEmpty)
	send(t, box, inbox.Message{Text: "two"})
	assert.Equal(t, []string{"two"}, drain(t, box))
}

// wideText returns UTF-16 or UTF-32 as editors and shells write it.
func wideText(order binary.AppendByteOrder, size int, text string) string {
	var b []byte
	if size == 4 {
		for _, r := range text {
			b = order.AppendUint32(b, uint32(r))
		}
		return string(b)
	}
	for _, u := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

// UTF-16 is not delivered as text full of NULs, nor in pieces. It is set aside whole, with advice,
// and UTF-8 lines behind it are delivered.
func TestWideLines(t *testing.T) {
	t.Parallel()
	little, big := binary.LittleEndian, binary.BigEndian
	for name, c := range map[string]struct {
		content string
		letters int // at least
	}{
		"a file of UTF-16":            {wideText(little, 2, "\ufeffname a river\r\nname a tree\r\n"), 2},
		"the other end first":         {wideText(big, 2, "\ufeffname a river\r\nname a tree\r\n"), 2},
		"of UTF-32":                   {wideText(little, 4, "\ufeffname a river\nname a tree\n"), 2},
		"UTF-32, the other end first": {wideText(big, 4, "\ufeffname a river\nname a tree\n"), 2},
		"an envelope":                 {wideText(little, 2, "\ufeff{\"prompt\":\"x\",\"id\":\"a\"}\r\n"), 1},
		"a line break in a character": {wideText(little, 2, "\ufeff去上海\n上海上海\n"), 2},
		"appended by a shell":         {"one\n" + wideText(little, 2, "name a river\r\n"), 1},
		"appended, another alphabet":  {"one\n" + wideText(little, 2, "名字\r\n"), 1},
		"appended, without a return":  {"one\n" + wideText(little, 2, "name a river\n"), 1},
		"appended, the other end":     {"one\n" + wideText(big, 2, "name a river\r\n"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, c.content+"\n{\"prompt\":\"last\"}\n")
			waiting, err := viewOf(t, box).Next(99)
			require.NoError(t, err)
			said := 0
			for _, w := range waiting {
				if w.Doomed == inbox.ReasonWide {
					said++
				}
			}
			got := drain(t, box)
			assert.Equal(t, "last", got[len(got)-1])
			assert.Len(t, got, 1+strings.Count(c.content, "one"))
			letters := deadLetters(t, box)
			assert.GreaterOrEqual(t, len(letters), c.letters)
			assert.Len(t, letters, said)
			for _, l := range letters {
				assert.Equal(t, inbox.ReasonWide, l.Reason)
				assert.Contains(t, l.Failure.Message, "save the text as UTF-8")
				raw, err := l.RawLine.Bytes()
				require.NoError(t, err)
				assert.Contains(t, c.content, string(raw), "the exact bytes are kept")
			}
		})
	}
	for _, text := range []string{"caf\xe9", "o\x00\x00ne", "nul \x00 amid", "\ufefftext", "\x01\x02"} {
		assert.Len(t, drain(t, newBox(t, text+"\n")), 1, "%q", text)
	}
}
