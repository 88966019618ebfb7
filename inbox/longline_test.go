package inbox_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// sparse makes the inbox one line of that length, and a second one.
func sparse(t testing.TB, length int64, rest string) *inbox.Inbox {
	t.Helper()
	box := newBox(t, "x")
	require.NoError(t, os.Truncate(box.Path(), length))
	echo(t, box.Path(), rest)
	return box
}

func TestLongestLineIsDelivered(t *testing.T) {
	if testing.Short() {
		t.Skip("64 MiB")
	}
	long := strings.Repeat("x", inbox.MaxLine)
	box := newBox(t, long+"\r\nlast\n")
	assert.True(t, deliver(t, box).Text == long)
	acknowledge(t, box, "done")
	assert.Equal(t, []string{"last"}, drain(t, box))
	assert.Less(t, fileSize(t, beside(box, ".inbox-journal")), int64(1<<20), "the journal shrinks again")
}

func TestTooLongLineIsSetAside(t *testing.T) {
	if testing.Short() {
		t.Skip("64 MiB")
	}
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

// However long the line is, reading it takes the same memory.
func TestTooLongLineIsNotReadIntoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("64 MiB")
	}
	cost := func(length int64) uint64 {
		box := sparse(t, length, "\nnext\n")
		allocated, _ := spent(t, func() { assert.Equal(t, "next", turn(t, box)) })
		return allocated
	}
	short, long := cost(inbox.MaxLine+2), cost(2*inbox.MaxLine)
	assert.Less(t, long, short+8<<20)
}

// A line that is still being written is not set aside, however long it is yet.
func TestTooLongTornLine(t *testing.T) {
	if testing.Short() {
		t.Skip("64 MiB")
	}
	box := sparse(t, inbox.MaxLine+2, "")
	_, err := next(t, box)
	assert.ErrorIs(t, err, inbox.ErrTorn)
	assert.Empty(t, deadLetters(t, box))
}

const deepChild = "HEARTBEAT_TEST_DEEP"

// JSON may be nested as deep as a line is long. A reader that calls itself for
// each level ends the process at once, again and again: no recover helps.
func TestDeepNestingIsDelivered(t *testing.T) {
	if testing.Short() {
		t.Skip("40 MiB")
	}
	if path := os.Getenv(deepChild); path != "" {
		e, err := next(t, open(t, path))
		require.NoError(t, err)
		require.Equal(t, fileSize(t, path)-1, int64(len(e.Text)), "verbatim: it is not valid JSON")
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
