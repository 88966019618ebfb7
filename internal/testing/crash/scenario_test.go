package crash_test

import (
	"cmp"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

var appending = crash.Scenario{
	Setup: func(t testing.TB, dir string) { write(t, dir, "cursor", "0") },
	Run:   func(dir string) crash.Command { return crash.Command{Name: "append", Args: []string{dir}} },
}

// checkAppending is what must hold of appending after any crash.
func checkAppending(t *testing.T, c crash.Crash) {
	assert.Contains(t, []string{"0", "13"}, read(t, c.Dir, "cursor"))
	assert.True(t, strings.HasPrefix(read(t, c.Dir, "log"), strings.Join(c.Promised, "")), "promised: %q", c.Promised)
}

func TestEveryKill(t *testing.T) {
	var logs []string
	points := 0
	appending.EveryKill(t, func(t *testing.T, c crash.Crash) {
		checkAppending(t, c)
		points++
		logs = append(logs, read(t, c.Dir, "log"))
		if c.Made == len(c.Ops) {
			c.Result.MaxRSS = 0 // whatever it took
			assert.Zero(t, c.Result)
			assert.Equal(t, "13", read(t, c.Dir, "cursor"))
		} else {
			assert.Equal(t, syscall.SIGKILL, c.Result.Signal)
		}
	})
	assert.Equal(t, len(appendOps)+3+1, points, "each call, torn at each write, complete")
	slices.Sort(logs)
	assert.Equal(t, []string{"", "fir", "first\n", "first\nsec", "first\nsecond\n"}, slices.Compact(logs))
}

func TestEveryFail(t *testing.T) {
	for errno, want := range map[syscall.Errno]int{
		unix.EIO:    2*len(appendOps) + 3, // once, stays; torn at each write
		unix.ENOSPC: len(appendOps) + 3 + 5,
	} {
		points := 0
		t.Run(unix.ErrnoName(errno), func(t *testing.T) {
			appending.EveryFail(t, errno, func(t *testing.T, c crash.Crash) {
				checkAppending(t, c)
				points++
				assert.Equal(t, 1, c.Result.ExitCode)
				assert.Contains(t, c.Result.Stderr, errno.Error())
			})
		})
		assert.Equal(t, want, points)
	}
}

func TestEveryPowerLoss(t *testing.T) {
	cursors := map[string]bool{}
	lasts := 0
	appending.EveryPowerLoss(t, 1, 20, func(t *testing.T, c crash.Crash) {
		checkAppending(t, c)
		cursors[read(t, c.Dir, "cursor")] = true
		if c.Made == len(c.Ops) {
			lasts++
			assert.Equal(t, []string{"first\n", "second\n"}, c.Promised)
			assert.Equal(t, "13", read(t, c.Dir, "cursor"))
		}
	})
	assert.Equal(t, 1, lasts, "all is durable in the end, so there is one image")
	assert.Len(t, cursors, 2)
}

// TestEveryPowerLossFindsMissingSync publishes without a sync, and wants to see
// each way in which that goes wrong.
func TestEveryPowerLossFindsMissingSync(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "cursor", "0")
	rec := crash.Record(t, dir, func() {
		require.NoError(t, disk.Publish(filepath.Join(dir, "cursor"), []byte("13"), false))
	})
	cursors := map[string]bool{}
	crash.EveryPowerLoss(t, rec, 1, 50, func(t *testing.T, c crash.Crash) {
		cursors[read(t, c.Dir, "cursor")] = true
	})
	assert.Equal(t, []string{"", "\x00\x00", "0", "1", "1\x00", "13"}, sortedKeys(cursors))
}

// TestEveryPowerLossDuringRecovery starts from what a power loss left.
func TestEveryPowerLossDuringRecovery(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "cursor", "0")
	rec := crash.Record(t, dir, func() { require.NoError(t, appendTwice(dir)) })
	crash.EveryPowerLoss(t, rec, 1, 2, func(t *testing.T, c crash.Crash) {
		again := crash.Record(t, c.Dir, func() { require.NoError(t, appendTwice(c.Dir)) })
		crash.EveryPowerLoss(t, again, 1, 1, func(t *testing.T, c2 crash.Crash) {
			assert.Contains(t, []string{"0", "13"}, read(t, c2.Dir, "cursor"))
		})
	})
}

// appendTrusting syncs the directory only when it made the file itself.
func appendTrusting(dir string) error {
	f, created, err := disk.OpenAppend(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Append([]byte("line\n"))
	err = errors.Join(err, f.Sync())
	if created {
		err = errors.Join(err, disk.SyncDir(dir))
	}
	if err == nil {
		crash.Promise("line\n")
	}
	return err
}

// TestEveryKillThenPowerLoss wants to see that neither crash alone takes a
// promised line away, and that the two together do.
func TestEveryKillThenPowerLoss(t *testing.T) {
	dir, lost := t.TempDir(), 0
	run := func(dir string) { require.NoError(t, appendTrusting(dir)) }
	rec := crash.Record(t, dir, func() { run(dir) })
	count := func(t *testing.T, c crash.Crash) {
		if strings.Count(read(t, c.Dir, "log"), "line\n") < len(c.Promised) {
			lost++
		}
	}
	crash.EveryPowerLoss(t, rec, 1, 10, count)
	assert.Zero(t, lost)
	crash.EveryKillThenPowerLoss(t, rec, run, 1, 0, count)
	assert.NotZero(t, lost)
}

func TestScenarioEveryKillThenPowerLoss(t *testing.T) {
	most := 0
	s := appending
	s.Setup = nil
	s.EveryKillThenPowerLoss(t, 1, 0, func(t *testing.T, c crash.Crash) {
		assert.Contains(t, []string{"", "13"}, read(t, c.Dir, "cursor"))
		most = max(most, len(c.Promised))
		if c.Made == len(c.Ops) {
			assert.Equal(t, "13", read(t, c.Dir, "cursor"))
		}
	})
	assert.Equal(t, 4, most, "both runs promise")
}
