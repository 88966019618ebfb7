package inbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
)

// forgetLeft forgets leftovers, and checks them against the prior announcement.
func forgetLeft(t testing.TB, box *inbox.Inbox) (names []string) {
	t.Helper()
	names, err := box.Leftovers()
	require.NoError(t, err)
	require.NoError(t, box.ForgetLeftovers(context.Background()))
	for _, name := range names {
		assert.NoFileExists(t, beside(box, name))
	}
	left, err := box.Leftovers()
	require.NoError(t, err)
	assert.Empty(t, left)
	return names
}

// The text of a long entry stays as long as anything points to it: from its delivery to its answer
// after a requeue, and again.
func TestForgetLeftoversKeepsWhatIsNamed(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x\n", 1<<20)
	box := newBox(t, fmt.Sprintf("{\"prompt\":%q}\nnext\n", text))
	kept := func(where string) {
		t.Helper()
		assert.Empty(t, forgetLeft(t, box), where)
		files := textFiles(t, box)
		require.Len(t, files, 1, where)
		assert.True(t, read(t, files[0]) == text, where)
	}
	deliver(t, box)
	kept("in flight")
	giveBack(t, box)
	kept("given back")
	deliver(t, box)
	settleNextOf(t, box, orphan)
	kept("a dead letter")
	requeue(t, box, letters(t, box)[0])
	kept("requeued, and waits")
	assert.Equal(t, "next", deliver(t, box).Text)
	acknowledge(t, box, "done")
	kept("requeued, and is next")
	deliver(t, box)
	kept("requeued, and in flight")
	settleNextOf(t, box, orphan)
	kept("a dead letter again")
	requeue(t, box, letters(t, box)[1])
	deliver(t, box)
	acknowledge(t, box, "done")
	assert.Len(t, forgetLeft(t, box), 1, "answered")
	assert.Empty(t, textFiles(t, box))
}

// Files of a killed process are removed. A living process keeps what it is writing.
func TestForgetLeftovers(t *testing.T) {
	box := newBox(t, "a\nb\n")
	deliver(t, box)
	acknowledge(t, box, "done")
	write(t, beside(box, ".entry-0-0123456789ab.txt"), "half")
	write(t, beside(box, ".entry-0-0123456789ab.txt.tmp"), "half")
	write(t, beside(box, ".inbox-tries"), "0 0 2 1\n")
	write(t, beside(box, ".results.jsonl.trim.tmp"), "half")
	write(t, beside(box, ".events.jsonl.trim.tmp"), "half")
	write(t, beside(box, ".entry-of-mine.md"), "mine")
	require.NoError(t, os.Mkdir(beside(box, ".entry-1-0123456789ab.txt"), 0o700))
	require.NoError(t, os.Symlink("inbox.jsonl", beside(box, ".entry-2-0123456789ab.txt")))
	trimming, err := os.Open(beside(box, ".events.jsonl.trim.tmp"))
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(trimming.Fd()), unix.LOCK_EX))

	assert.ElementsMatch(t, []string{".entry-0-0123456789ab.txt", ".entry-0-0123456789ab.txt.tmp", ".inbox-tries"}, forgetLeft(t, box))
	assert.NoFileExists(t, beside(box, ".results.jsonl.trim.tmp"))
	assert.FileExists(t, beside(box, ".events.jsonl.trim.tmp"), "somebody is making it")
	require.NoError(t, trimming.Close())
	forgetLeft(t, box)
	for _, pattern := range []string{".entry-0*", "*.tmp", ".inbox-tries"} {
		all, err := filepath.Glob(beside(box, pattern))
		require.NoError(t, err)
		assert.Empty(t, all, pattern)
	}
	for _, name := range []string{".entry-of-mine.md", ".entry-1-0123456789ab.txt", ".entry-2-0123456789ab.txt"} {
		_, err := os.Lstat(beside(box, name))
		assert.NoError(t, err, name)
	}
}

// The count of tries stays while its entry waits.
func TestForgetLeftoversKeepsTheTries(t *testing.T) {
	box := newBox(t, strings.Repeat("x", 3<<20)+"\nnext\n")
	write(t, beside(box, ".inbox-tries"), fmt.Sprintf("0 0 %d 2\n", 3<<20+1))
	assert.Empty(t, forgetLeft(t, box))
	assert.FileExists(t, beside(box, ".inbox-tries"))
}

// A text that a broken line names stays: the person who repairs the line may want it.
func TestForgetLeftoversKeepsWhatABrokenLetterNames(t *testing.T) {
	box := newBox(t, "")
	write(t, beside(box, ".entry-0-0123456789ab.txt"), "text")
	write(t, beside(box, ".dead-letter.jsonl"), `{"raw_file":".entry-0-0123456789ab.txt"`+"\n")
	assert.Empty(t, forgetLeft(t, box))
	assert.FileExists(t, beside(box, ".entry-0-0123456789ab.txt"))
}
