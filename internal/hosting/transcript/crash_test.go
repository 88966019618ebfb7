package transcript

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

const crashMessages = 12

var hosted = crash.Scenario{
	Setup: func(testing.TB, string) {},
	Run: func(dir string) crash.Command {
		return crash.Command{Name: "session", Args: []string{dir, strconv.Itoa(crashMessages)}}
	},
}

// recovered finishes what a crash left and checks that each accepted message is in
// the database once, and no other but at most the one that was being accepted.
func recovered(t *testing.T, c crash.Crash) {
	t.Helper()
	o := in(c.Dir)
	result := crash.Command{Name: "recover", Args: []string{c.Dir}}.Run(t)
	require.Zero(t, result.ExitCode, result.Stderr)
	stored := int64(0)
	for m, err := range ReadEnded(limited(t), o, 1) {
		require.NoError(t, err)
		stored = m.N
	}
	if c.Result.ExitCode != lostSome {
		assert.GreaterOrEqual(t, stored, int64(len(c.Promised)))
	}
	assert.LessOrEqual(t, stored, int64(len(c.Promised)+1))
	if stored > 0 {
		requireStored(t, o, stored)
	}
	assert.NoFileExists(t, o.Spool)
}

func TestKilledAtEachCall(t *testing.T) { hosted.EveryKill(t, recovered) }

func TestFullDiskAtEachCall(t *testing.T) { hosted.EveryFail(t, unix.ENOSPC, recovered) }

// TestKilledAtAnyTime kills hosts that are busy, some of them on what another one left.
func TestKilledAtAnyTime(t *testing.T) {
	const more = 150
	kills := int64(long.Rounds(12, 60))
	dir := t.TempDir()
	accepted := int64(0)
	for i := range kills {
		child := crash.Command{Name: "session", Args: []string{dir, strconv.Itoa(10_000_000)}}.Start(t)
		for range more + 37*(i%20) {
			n, err := strconv.ParseInt(child.Line(t), 10, 64)
			require.NoError(t, err)
			require.Greater(t, n, accepted)
			accepted = n
		}
		child.Kill(t)
		if i%3 == 0 {
			require.Zero(t, crash.Command{Name: "recover", Args: []string{dir}}.Run(t).ExitCode)
		}
	}
	o := in(dir)
	require.NoError(t, Recover(limited(t), o))
	db, err := connect(limited(t), o.DB, "ro")
	require.NoError(t, err)
	last, err := db.last(limited(t), o.SessionID)
	require.NoError(t, err)
	require.NoError(t, db.close())
	assert.GreaterOrEqual(t, last, accepted)
	requireStored(t, o, last)
}
