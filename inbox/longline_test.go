package inbox_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/long"
)

// sparse creates an inbox of one line of that length and the rest.
func sparse(t testing.TB, length int64, rest string) *inbox.Inbox {
	t.Helper()
	box := newBox(t, "x")
	require.NoError(t, os.Truncate(box.Path(), length))
	echo(t, box.Path(), rest)
	return box
}

func TestLongestLineIsDelivered(t *testing.T) {
	long.Only(t, "64 MiB")
	long := strings.Repeat("x", inbox.MaxLine)
	box := newBox(t, long+"\r\nlast\n")
	assert.True(t, textBeside(t, box, deliver(t, box)) == long)
	acknowledge(t, box, "done")
	assert.Empty(t, textFiles(t, box))
	assert.Equal(t, []string{"last"}, drain(t, box))
	assert.Less(t, fileSize(t, beside(box, ".inbox-journal")), int64(1<<20), "the journal shrinks again")
}

func TestTooLongLineIsSetAside(t *testing.T) {
	long.Only(t, "64 MiB")
	for name, end := range map[string]string{"LF": "\n", "CRLF": "\r\n"} {
		t.Run(name, func(t *testing.T) {
			box := sparse(t, inbox.MaxLine+1, end+"next\n")
			assert.Equal(t, []string{"next"}, drain(t, box))
			dead := deadLetters(t, box)
			require.Len(t, dead, 1)
			assert.Equal(t, inbox.DeadLetter{
				EntryID:        sha256Hex("x" + string(make([]byte, inbox.MaxLine))),
				RawFile:        dead[0].RawFile,
				EndOffset:      inbox.MaxLine + 1 + int64(len(end)),
				Reason:         inbox.ReasonTooLong,
				DeadLetteredAt: noon,
			}, dead[0])
			assert.Equal(t, int64(inbox.MaxLine+1), fileSize(t, beside(box, dead[0].RawFile)), "the exact line")
		})
	}
}

// Reading a line takes the same memory, however long the line is.
func TestTooLongLineIsNotReadIntoMemory(t *testing.T) {
	long.Only(t, "64 MiB")
	cost := func(length int64) uint64 {
		box := sparse(t, length, "\nnext\n")
		allocated, _ := spent(t, func() { assert.Equal(t, "next", turn(t, box)) })
		return allocated
	}
	short, long := cost(inbox.MaxLine+2), cost(2*inbox.MaxLine)
	assert.Less(t, long, short+8<<20)
}

// A line that is still being written is not set aside, however long it is already.
func TestTooLongTornLine(t *testing.T) {
	long.Only(t, "64 MiB")
	box := sparse(t, inbox.MaxLine+2, "")
	_, err := next(t, box)
	assert.ErrorIs(t, err, inbox.ErrTorn)
	assert.Empty(t, deadLetters(t, box))
}

const deepChild = "HEARTBEAT_TEST_DEEP"

// JSON may be nested as deep as a line is long. A recursive reader would end the process at once,
// every time, and no recover would help.
func TestDeepNestingIsDelivered(t *testing.T) {
	if testing.Short() {
		t.Skip("40 MiB")
	}
	if path := os.Getenv(deepChild); path != "" {
		e, err := next(t, open(t, path))
		require.NoError(t, err)
		text := textBeside(t, open(t, path), e)
		require.Equal(t, fileSize(t, path)-1, int64(len(text)), "verbatim: it is not valid JSON")
		return
	}
	for name, open := range map[string]string{"arrays": "[", "objects": `{"a":`} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, `{"prompt":"x","m":`+strings.Repeat(open, 8<<20)+"\n")
			cmd := exec.Command(os.Args[0], "-test.run=^TestDeepNestingIsDelivered$")
			cmd.Env = append(os.Environ(), deepChild+"="+box.Path())
			out, err := cmd.CombinedOutput()
			first, _, _ := bytes.Cut(out, []byte("\n\n"))
			assert.NoError(t, err, "%s", first)
		})
	}
}

func textFiles(t testing.TB, box *inbox.Inbox) []string {
	t.Helper()
	all, err := filepath.Glob(beside(box, ".entry-*.txt"))
	require.NoError(t, err)
	return all
}

// textBeside returns the text of a long entry from the file that it names.
func textBeside(t testing.TB, box *inbox.Inbox, e inbox.Entry) string {
	t.Helper()
	files := textFiles(t, box)
	require.Len(t, files, 1)
	assert.Contains(t, e.Text, "in the file "+files[0]+":")
	return read(t, files[0])
}

// A long line is delivered through a file, with its id and its other members.
func TestLongEntry(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x\\u00e9\\n", 300<<10)
	text := strings.Repeat("x\u00e9\n", 300<<10)
	for name, c := range map[string]struct{ line, text, id, reason string }{
		"envelope":           {`{"id":"job","prompt":"` + long + `","m":1}`, text, "job", ""},
		"string":             {`"` + long + `"`, text, "", ""},
		"verbatim":           {`{"prompt":"` + long + `"`, `{"prompt":"` + long + `"`, "", ""},
		"prompt twice":       {`{"prompt":"x","prompt":"` + long + `"}`, text, "", ""},
		"much metadata":      {`{"prompt":"x","m":"` + long + `"}`, "", "", "too long"},
		"nothing in it":      {`{"prompt":"` + strings.Repeat(" ", 3<<20) + `"}`, "", "", "empty"},
		"expired":            {`{"prompt":"` + long + `","expires_at":"2020-01-01T00:00:00Z"}`, "", "", "expired"},
		"control characters": {strings.Repeat("\x01", 1<<20), strings.Repeat("\x01", 1<<20), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, c.line+"\nnext\n")
			if c.reason != "" {
				assert.Equal(t, []string{"next"}, drain(t, box))
				dead := deadLetters(t, box)
				require.Len(t, dead, 1)
				assert.EqualValues(t, c.reason, dead[0].Reason)
				assert.Equal(t, c.line, read(t, beside(box, dead[0].RawFile)))
				assert.Empty(t, textFiles(t, box))
				return
			}
			e := deliver(t, box)
			assert.Equal(t, c.id, e.ID)
			assert.Equal(t, sha256Hex(c.line), e.EntryID)
			assert.True(t, textBeside(t, box, e) == c.text)
			giveBack(t, box)
			assert.Equal(t, e.Text, deliver(t, box).Text)
			settleNextOf(t, box, orphan)
			dead := letters(t, box)
			require.Len(t, dead, 1)
			assert.True(t, read(t, beside(box, dead[0].RawFile)) == c.text, "the letter keeps the text")
			requeue(t, box, dead[0])
			assert.Equal(t, []string{"next", e.Text}, drain(t, box))
		})
	}
}

// A line that kills every process that reads it is set aside on the fourth try.
func TestDeliveryDied(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 3<<20)
	box := newBox(t, line+"\nnext\n")
	for try := range 4 {
		if try > 0 { // a killed process removes nothing
			write(t, beside(box, ".inbox-tries"), fmt.Sprintf("0 0 %d %d\n", len(line)+1, try))
		}
		e, err := next(t, box)
		require.NoError(t, err)
		if try < 3 {
			assert.NoFileExists(t, beside(box, ".inbox-tries"), "that process lives")
			assert.Contains(t, e.Text, ".entry-0-")
			continue
		}
		assert.Equal(t, "next", e.Text)
	}
	write(t, beside(box, ".inbox-tries"), fmt.Sprintf("0 0 %d 3\n", len(line)+1))
	assert.Equal(t, []string{"next"}, drain(t, box))
	assert.NoFileExists(t, beside(box, ".inbox-tries"))
	dead := deadLetters(t, box)
	require.Len(t, dead, 1)
	assert.Equal(t, inbox.ReasonDied, dead[0].Reason)
	assert.Equal(t, line, read(t, beside(box, dead[0].RawFile)))
}
