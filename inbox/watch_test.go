package inbox_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// watch follows the inbox, by events alone if poll is long.
func watch(t testing.TB, box *inbox.Inbox, poll time.Duration) *inbox.Watcher {
	t.Helper()
	w := box.Watch(poll)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

const never = 10_000 * time.Hour

// Every change of the inbox wakes its watcher; otherwise the test hangs.
func TestWatchSeesChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t testing.TB, path string){
		"appended to": func(t testing.TB, path string) { echo(t, path, "new\n") },
		"truncated":   func(t testing.TB, path string) { require.NoError(t, os.Truncate(path, 0)) },
		"rewritten":   func(t testing.TB, path string) { write(t, path, "new\n") },
		"replaced":    func(t testing.TB, path string) { replace(t, path, "new\n") },
		"removed":     func(t testing.TB, path string) { require.NoError(t, os.Remove(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			w := watch(t, box, never)
			change(t, box.Path())
			<-w.C
		})
	}
}

func TestWatchSeesTheInboxAppear(t *testing.T) {
	box := open(t, filepath.Join(t.TempDir(), "later.jsonl"))
	w := watch(t, box, never)
	echo(t, box.Path(), "new\n")
	<-w.C
}

// Changes of state files wake nobody. The inbox changes after them, so the watcher has seen
// everything by then.
func TestWatchLeavesOutStateFiles(t *testing.T) {
	box := newBox(t, oldContent)
	w := watch(t, box, never)
	write(t, beside(box, ".inbox-offset"), "0")
	write(t, beside(box, ".results.jsonl"), "")
	write(t, beside(box, "inbox.jsonl.new"), "x")
	select {
	case <-w.C:
		t.Error("it told of a state file")
	default:
	}
	echo(t, box.Path(), "new\n")
	<-w.C
}

// Without file events the poll notices changes: here the inbox is a link to a file in another directory.
func TestWatchPolls(t *testing.T) {
	real := filepath.Join(t.TempDir(), "real.jsonl")
	write(t, real, "")
	link := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.Symlink(real, link))
	w := watch(t, open(t, link), time.Millisecond)
	for range 2 {
		echo(t, real, "new\n")
		<-w.C
	}
}

// If nothing can be watched, the poll remains.
func TestWatchOfAGoneDirectory(t *testing.T) {
	box := newBox(t, "")
	dir := filepath.Dir(box.Path())
	require.NoError(t, os.RemoveAll(dir))
	w := watch(t, box, time.Millisecond)
	require.NoError(t, os.Mkdir(dir, 0o700))
	write(t, box.Path(), "new\n")
	<-w.C
}
