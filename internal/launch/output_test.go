package launch_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/long"
)

// flooding is the launcher around a command that prints that many megabytes and
// makes a file when it has.
func flooding(t *testing.T, megabytes int) (cmd *exec.Cmd, finished string) {
	finished = filepath.Join(t.TempDir(), "finished")
	return exec.Command("heartbeat-launch", "--", "flood", strconv.Itoa(megabytes), finished), finished
}

// A command goes on when stdout takes nothing, and that is said once.
func TestStdoutTakesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stdout func(t *testing.T) *os.File
		why    string
	}{
		"nobody reads": {func(t *testing.T) *os.File { _, w := pipe(t); return w }, "it is not being read"},
		"reader gone": {func(t *testing.T) *os.File {
			r, w := pipe(t)
			require.NoError(t, r.Close())
			return w
		}, "its reader is gone"},
		"disk full": {func(t *testing.T) *os.File {
			f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			require.NoError(t, err)
			t.Cleanup(func() { _ = f.Close() }) // nothing was written
			return f
		}, "no space left on device"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, finished := flooding(t, 20)
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = c.stdout(t), &stderr
			require.NoError(t, cmd.Run())
			assert.FileExists(t, finished)
			assert.Equal(t, "heartbeat-launch: stdout does not take the output ("+c.why+
				"): what it does not take is dropped, and the session goes on\n", stderr.String())
		})
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() }) // one may be closed already
	return r, w
}

// The command also goes on when stderr is the same pipe that nobody reads.
func TestNothingIsTaken(t *testing.T) {
	t.Parallel()
	cmd, finished := flooding(t, 5)
	_, w := pipe(t)
	cmd.Stdout, cmd.Stderr = w, w
	require.NoError(t, cmd.Run())
	assert.FileExists(t, finished)
}

// The command also runs without a stdout.
func TestStdoutIsClosed(t *testing.T) {
	finished := filepath.Join(t.TempDir(), "finished")
	out, err := exec.Command("sh", "-c", `exec heartbeat-launch -- flood 2 "$0" >&-`, finished).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.FileExists(t, finished)
}

// A broken pipe ends the command as it does without the launcher: SIGPIPE is not ignored
// in it.
func TestTheCommandsPipesBreak(t *testing.T) {
	out, err := exec.Command("heartbeat-launch", "--", "sh", "-c", "{ yes; echo $? >&2; } | head -n 1").Output()
	require.NoError(t, err)
	assert.Equal(t, "y\r\n141\r\n", string(out))
}

// Large output arrives whole, in memory that does not grow with it.
func TestLargeOutput(t *testing.T) {
	t.Parallel()
	megabytes := long.Rounds(30, 300)
	_, small := copied(t, 1)
	n, large := copied(t, megabytes)
	assert.EqualValues(t, megabytes*16*64*1024+len("the end\r\n"), n)
	assert.Less(t, large, small+8<<10, "KB of memory, against %d for a small output", small)
}

// copied runs a flood to its end, and returns how much came through, and the peak
// of the memory in KB.
func copied(t *testing.T, megabytes int) (n int64, peak int64) {
	cmd := exec.Command("heartbeat-launch", "--", "sh", "-c", `stty -opost; exec flood "$0"`, strconv.Itoa(megabytes))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	n, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	return n, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
}

// 200 sessions in one process leave no open files, children or goroutines.
func TestSessionsLeaveNothing(t *testing.T) {
	t.Parallel()
	n := long.Rounds(40, 200)
	cmd := exec.Command("sessions", strconv.Itoa(n))
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), strconv.Itoa(n-1)+"\r\n")
	left, err := os.ReadDir(cmd.Dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// Sessions leave a child of the process alone that is none of theirs.
func TestSessionsBesideAStranger(t *testing.T) {
	out, err := exec.Command("sh", "-c", `sleep 1000 >&- 2>&- & echo $!; exec sessions 5`).CombinedOutput()
	require.NoError(t, err, string(out))
	stranger, rest, _ := strings.Cut(string(out), "\n")
	assert.Equal(t, "0\r\n1\r\n2\r\n3\r\n4\r\n", rest)
	pid, err := strconv.Atoi(stranger)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL), "it did not live on")
}
