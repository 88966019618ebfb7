package inbox_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
)

// forget removes the journal's note that the files followed the last commit, as a kill before the note does.
func forget(t testing.TB, box *inbox.Inbox) {
	t.Helper()
	j := read(t, beside(box, journal))
	lines := strings.SplitAfter(written(j), "\n")
	require.Contains(t, lines[len(lines)-2], "followed")
	write(t, beside(box, journal), filled(strings.Join(lines[:len(lines)-2], ""), j))
}

// documented are the files that follow a commit.
var documented = []string{".inbox-offset", ".in-flight", ".responded", ".results.jsonl", ".dead-letter.jsonl"}

// Without the note, the documented files are repaired, whatever a power loss left of them: the commit counts.
func TestFilesAreMadeGood(t *testing.T) {
	for step, settle := range tornCommits {
		for how, spoil := range map[string]func(t testing.TB, path string){
			"gone":  func(t testing.TB, path string) { require.NoError(t, os.Remove(path)) },
			"empty": func(t testing.TB, path string) { require.NoError(t, os.Truncate(path, 0)) },
			"torn": func(t testing.TB, path string) {
				require.NoError(t, os.Truncate(path, fileSize(t, path)/2))
			},
			"right": func(testing.TB, string) {},
		} {
			for _, name := range documented {
				t.Run(step+" "+name+" "+how, func(t *testing.T) {
					reboot(t, "one")
					box := newBox(t, oldContent)
					turn(t, box)
					turn(t, box)
					in(t, box, func(tx *inbox.Tx) { require.NoError(t, settle(tx)) })
					want := snapshot(t, box)
					if _, ok := want[name]; !ok {
						t.Skip("this step leaves no such file")
					}
					spoil(t, beside(box, name))
					forget(t, box)
					reboot(t, "after the power loss")
					in(t, box, func(*inbox.Tx) {})
					got := snapshot(t, box)
					for _, name := range documented {
						assert.Equal(t, want[name], got[name], name)
					}
				})
			}
		}
	}
}

// If the kernel does not identify the boot, no mark vouches for what a power loss may have taken.
// An answered entry still does not come again, and its result is there.
func TestUnreadBootIsAnother(t *testing.T) {
	for name, boots := range map[string][2]string{
		"never read": {machine.TestOnlyUnread, machine.TestOnlyUnread}, "read before": {"one", machine.TestOnlyUnread}, "read after": {machine.TestOnlyUnread, "two"},
	} {
		for _, lost := range documented[:4] {
			t.Run(name+" "+lost, func(t *testing.T) {
				reboot(t, boots[0])
				box := newBox(t, oldContent)
				turn(t, box)
				turn(t, box)
				want := snapshot(t, box)
				reboot(t, boots[1])
				require.NoError(t, os.Remove(beside(box, lost)))
				in(t, box, func(*inbox.Tx) {})
				got := snapshot(t, box)
				for _, name := range documented {
					assert.Equal(t, want[name], got[name], name)
				}
			})
		}
	}
}

// Files that should be gone are removed.
func TestLeftoversAreRemoved(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	left := snapshot(t, box)
	acknowledge(t, box, "done")
	write(t, beside(box, ".in-flight"), left[".in-flight"])
	write(t, beside(box, ".responded"), "")
	write(t, beside(box, ".inbox-offset"), "0")
	forget(t, box)
	in(t, box, func(tx *inbox.Tx) { assert.Nil(t, tx.InFlight()) })
	assert.NoFileExists(t, beside(box, ".in-flight"))
	assert.NoFileExists(t, beside(box, ".responded"))
	assert.Equal(t, "4", cursorFile(t, box))
	assert.Len(t, results(t, box), 1)
}

// A new boot may follow a power loss, which takes any part of the unsynced files. Every result that
// the journal still vouches for comes back.
func TestResultsAreMadeGoodAfterAPowerLoss(t *testing.T) {
	for _, lost := range []int{0, 1, 2, 3} {
		reboot(t, "one")
		box := newBox(t, oldContent)
		drain(t, box)
		want := read(t, box.ResultsPath())
		lines := strings.SplitAfter(want, "\n")
		write(t, box.ResultsPath(), strings.Join(lines[:lost], ""))
		reboot(t, "two")
		in(t, box, func(*inbox.Tx) {})
		assert.Equal(t, want, read(t, box.ResultsPath()), "%d results were left", lost)
	}
}

// Any number of boots and looks at the queue change nothing.
func TestManyBoots(t *testing.T) {
	reboot(t, "one")
	box := newBox(t, oldContent)
	turn(t, box)
	turn(t, box)
	want := snapshot(t, box)
	for _, id := range []string{"two", "three", "four"} {
		reboot(t, id)
		for i := range 3 {
			got, err := look(t, box)
			require.NoError(t, err, "look %d in boot %s", i+1, id)
			assert.Equal(t, view{Cursor: 4, InFlight: "two"}, got)
		}
	}
	for _, name := range documented {
		assert.Equal(t, want[name], snapshot(t, box)[name], name)
	}
	assert.Equal(t, []string{"three"}, drain(t, box))
}

// A reader sees whole numbers and objects, even when they get shorter.
func TestFilesGetShorter(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	box := newBox(t, long+"\n"+strings.Repeat("y", 100)+"\nz\n")
	turn(t, box)
	for _, want := range []string{strings.Repeat("y", 100), "z"} {
		require.Equal(t, want, turn(t, box))
		d := inFlightFile(t, box)
		assert.Equal(t, want, d.Text())
	}
	acknowledge(t, box, "done")
	write(t, box.Path(), "")
	in(t, box, func(*inbox.Tx) {})
	assert.Equal(t, "0", cursorFile(t, box))
}

// A commit stands even if the files cannot follow. A warning says so, and the next transaction
// completes them.
func TestCommitStandsWhenFilesCannotFollow(t *testing.T) {
	box := newBox(t, oldContent)
	turn(t, box)
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	require.NoError(t, tx.Acknowledge("done"))
	// A directory blocks the new content that .in-flight's removal makes room for.
	require.NoError(t, os.Remove(beside(box, ".responded")))
	require.NoError(t, os.Mkdir(beside(box, ".responded"), 0o700))
	require.NoError(t, tx.Commit())
	require.Len(t, tx.Warnings(), 1)
	assert.Contains(t, tx.Warnings()[0], "committed, but")
	require.NoError(t, tx.Close())
	assert.Len(t, results(t, box), 1)

	require.NoError(t, os.Remove(beside(box, ".responded")))
	got, err := look(t, box)
	require.NoError(t, err)
	assert.Equal(t, view{Cursor: 4, Next: "two"}, got)
	assert.NoFileExists(t, beside(box, ".in-flight"))
	assert.Equal(t, []string{"two", "three"}, drain(t, box))
	assert.Len(t, results(t, box), 3)
}
