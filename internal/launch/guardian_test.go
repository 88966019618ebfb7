package launch_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/testing/script"
)

// mark is the mark of the innermost session that a file names.
func mark(ts *testscript.TestScript, file string) string {
	marks := strings.TrimSpace(ts.ReadFile(file))
	if marks == "" {
		ts.Fatalf("%s holds no mark", file)
	}
	return marks[strings.LastIndex(marks, ":")+1:]
}

// processesWith are the processes that have a text in that file of proc(5).
func processesWith(file, text string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/" + file) // the pattern is good
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(content), text) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && !script.Dead(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// guardianOf is the guardian of the session with that mark, 0 for none.
func guardianOf(mark string) int {
	for _, pid := range processesWith("cmdline", "heartbeat-guardian\x00"+mark+"\x00") {
		return pid
	}
	return 0
}

// The guardian holds nothing of the caller's, and lives through every signal but SIGKILL
// until it has ended the session.
func TestGuardian(t *testing.T) {
	s := sit(t, "sh", "-c", `exec 9>lock; exec heartbeat-launch -- sh -c 'trap "" HUP; echo $HEARTBEAT_SESSION > mark; echo begun; while :; do sleep 0.01; done'`)
	s.Prints("begun")
	text, err := os.ReadFile(filepath.Join(s.Cmd.Dir, "mark"))
	require.NoError(t, err)
	mark, pid := strings.TrimSpace(string(text)), 0
	require.Eventually(t, func() bool { pid = guardianOf(mark); return pid != 0 }, script.Patience, time.Millisecond)

	proc := "/proc/" + strconv.Itoa(pid)
	held := func() (all string) {
		files, err := filepath.Glob(proc + "/fd/*")
		require.NoError(t, err)
		for _, f := range append(files, proc+"/cwd") {
			link, _ := os.Readlink(f) // it may just have been closed
			all += filepath.Base(f) + " " + link + "\n"
		}
		return all
	}
	require.Eventually(t, func() bool { return !strings.Contains(held(), "lock") }, script.Patience, time.Millisecond, "it holds the lock of flock(1)")
	for _, part := range []string{"0 /dev/null\n", "1 /dev/null\n", "2 /dev/null\n", "3 pipe:", "cwd /\n"} {
		assert.Contains(t, held(), part)
	}
	assert.NotContains(t, held(), "/dev/pts")
	assert.NotContains(t, held(), "/dev/ptmx")
	session, err := unix.Getsid(pid)
	require.NoError(t, err)
	assert.Equal(t, pid, session)

	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGHUP, unix.SIGTERM} {
		require.NoError(t, unix.Kill(pid, sig))
	}
	require.NoError(t, s.Cmd.Process.Kill())
	require.Eventually(t, func() bool { return guardianOf(mark) == 0 }, script.Patience, time.Millisecond, "it stays")
	assert.Empty(t, processesWith("environ", mark))
}
