package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func testLane(t *testing.T, entries int) *lane {
	t.Helper()
	l, err := newTestBench(t).filledLane("lane", entries)
	require.NoError(t, err)
	t.Cleanup(l.close)
	return l
}

func TestEntriesAreOneKilobyte(t *testing.T) {
	l := testLane(t, 3)
	content, err := os.ReadFile(l.inbox)
	require.NoError(t, err)
	assert.Len(t, content, 3*entrySize)
	assert.Len(t, message(7, 999_999_999)+"\n", entrySize)
}

func TestTickWantsTheNextEntry(t *testing.T) {
	l := testLane(t, 3)
	l.next = 1
	_, err := l.tick()
	require.ErrorContains(t, err, `delivered "entry 000000000`)
}

func TestTickWantsAnEntry(t *testing.T) {
	_, err := testLane(t, 0).tick()
	require.ErrorContains(t, err, "the stop was approved")
}

func TestTickWantsNoWarning(t *testing.T) {
	l := testLane(t, 3)
	_, err := l.tick()
	require.NoError(t, err)
	_, err = l.tick()
	require.NoError(t, err)
	require.NoError(t, os.Truncate(l.inbox, 0)) // the hook will warn of it
	_, err = l.tick()
	require.ErrorContains(t, err, "it complained")
}

func TestFinishWantsNothingLeft(t *testing.T) {
	l := testLane(t, 2)
	_, err := l.tick()
	require.NoError(t, err)
	require.ErrorContains(t, l.finish(), "the last tick delivered")
	require.NoError(t, l.finish())
}

func TestRestartForgets(t *testing.T) {
	l := testLane(t, 4)
	for _, from := range []int{0, 2, 2, 0} {
		require.NoError(t, l.restart(from))
		for range 2 {
			_, err := l.tick()
			require.NoError(t, err)
		}
	}
}

func TestProcessMustEndWell(t *testing.T) {
	r, err := newTestBench(t).runner()
	require.NoError(t, err)
	defer r.close()
	out, _, err := r.run([]byte("in"), "sh", "-c", "cat")
	require.NoError(t, err)
	assert.Equal(t, "in", string(out))
	_, _, err = r.run(nil, "sh", "-c", "echo oops >&2; exit 3")
	require.ErrorContains(t, err, "exit status 3: oops")
	_, _, err = r.run(nil, "sh", "-c", "echo hm >&2")
	require.ErrorContains(t, err, "it complained: hm")
	_, _, err = r.run(nil, "sh", "-c", "true")
	require.NoError(t, err)
	_, _, err = r.run(make([]byte, 1<<20), "sh", "-c", "true")
	require.ErrorContains(t, err, "more than a pipe is sure to hold")
}

func TestEnvironmentIsOurs(t *testing.T) {
	t.Setenv("HEARTBEAT_INBOX", "/somewhere")
	t.Setenv("CLAUDECODE", "1")
	r, err := newTestBench(t).runner()
	require.NoError(t, err)
	defer r.close()
	out, _, err := r.run(nil, "sh", "-c", "env")
	require.NoError(t, err)
	assert.NotContains(t, string(out), "HEARTBEAT")
	assert.NotContains(t, string(out), "CLAUDE")
}

// The peak memory of a small program must not include that of the process that started
// it.
func TestPeakIsTheChilds(t *testing.T) {
	ballast := []byte(strings.Repeat("x", 64<<20))
	r, err := newTestBench(t).runner()
	require.NoError(t, err)
	defer r.close()
	report := filepath.Join(t.TempDir(), "peak")
	_, _, err = r.run(nil, built.peak, report, "sh", "-c", "true")
	require.NoError(t, err)
	text, err := os.ReadFile(report)
	require.NoError(t, err)
	peak, err := strconv.ParseInt(string(text), 10, 64)
	require.NoError(t, err)
	assert.Greater(t, peak, int64(100_000))
	assert.Less(t, peak, int64(len(ballast)/4))
	_, _, err = r.run(nil, built.peak, report, "sh", "-c", "exit 3")
	require.ErrorContains(t, err, "exit status 3")
}

func TestBaselineWritesTwoFiles(t *testing.T) {
	base, err := newTestBench(t).baseline("base")
	require.NoError(t, err)
	defer base.close()
	for range 2 {
		_, err = base.write()
		require.NoError(t, err)
	}
	files, err := os.ReadDir(base.dir)
	require.NoError(t, err)
	assert.Len(t, files, 2)
}
