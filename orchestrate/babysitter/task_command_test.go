package babysitter_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate/babysitter"
	runs "heartbeat/orchestrate/run"
)

func sh(script string) runs.Command {
	return runs.Command{Argv: []string{"sh", "-c", script}, Timeout: time.Minute}
}

func TestExecute(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]babysitter.Outcome{
		"echo out; echo err >&2":       {Stdout: "out\n", Stderr: "err\n"},
		"echo out; exit 3":             {Stdout: "out\n", Status: 3, Failure: "it ended with status 3, and not 0"},
		"kill -9 $$":                   {Status: -1, Failure: "a signal ended it (killed)"},
		"sleep 1000 & echo started":    {Stdout: "started\n"}, // holds stdout open
		"trap '' HUP; echo $NAME >&2;": {Stderr: "value\n"},
	} {
		c := sh(script)
		c.Env = []string{"NAME=value"}
		assert.Equal(t, want, babysitter.Execute(context.Background(), c), script)
	}
	three := sh("exit 3")
	three.Success = 3
	assert.Empty(t, babysitter.Execute(context.Background(), three).Failure)
	missing := runs.Command{Argv: []string{"no-such-command"}, Timeout: time.Minute}
	assert.Contains(t, babysitter.Execute(context.Background(), missing).Failure, "no-such-command")
	nowhere := sh("exit 0")
	nowhere.Cwd = "/no/such/folder"
	assert.Equal(t, "its working directory: stat /no/such/folder: no such file or directory", babysitter.Execute(context.Background(), nowhere).Failure)
}

// A command failed if what is cut off is its result.
func TestOutputIsBounded(t *testing.T) {
	o := babysitter.Execute(context.Background(), sh("head -c 60000000 /dev/zero | tr '\\0' x"))
	assert.True(t, o.Cut)
	assert.LessOrEqual(t, len(o.Stdout), babysitter.MaxOutput)
	assert.Greater(t, len(o.Stdout), babysitter.MaxOutput/2)
	assert.Zero(t, o.Status)
	assert.Contains(t, o.Failure, "cut off")

	o = babysitter.Execute(context.Background(), sh("head -c 60000000 /dev/zero | tr '\\0' x >&2; echo fine"))
	assert.True(t, o.Cut)
	assert.Empty(t, o.Failure, "its result is whole")
	silent := sh("head -c 60000000 /dev/zero")
	silent.Silent = true
	assert.Empty(t, babysitter.Execute(context.Background(), silent).Failure, "its output is not wanted")
}

// No process of a command's group survives the end of the command, of its time, or of the
// context.
func TestItsFamilyEnds(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	family := "export pids='" + pids + "'; echo $$ > $pids; sh -c 'trap \"\" TERM; echo $$ >> $pids; while :; do sleep 0.1; done' & "
	const lives = "while [ $(wc -l < $pids) -lt 2 ]; do sleep 0.01; done; "

	short := sh(family + "wait")
	short.Timeout = 8 * time.Second
	assert.Equal(t, "it was ended after 8s", babysitter.Execute(context.Background(), short).Failure)
	assertGone(t, pids)

	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		for read, _ := os.ReadFile(pids); strings.Count(string(read), "\n") < 2; read, _ = os.ReadFile(pids) {
			time.Sleep(time.Millisecond)
		}
		cancel(errors.New("made up"))
	}()
	assert.Equal(t, "it was ended: made up", babysitter.Execute(ctx, sh(family+"wait")).Failure)
	assertGone(t, pids)

	assert.Empty(t, babysitter.Execute(context.Background(), sh(family+lives)).Failure)
	assertGone(t, pids)
}

// assertGone also removes the file, for the next command.
func assertGone(t *testing.T, pids string) {
	t.Helper()
	text, err := os.ReadFile(pids)
	require.NoError(t, err)
	require.NoError(t, os.Remove(pids))
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		require.NoError(t, err)
		assert.Eventually(t, func() bool { return !alive(pid) }, 5*time.Minute, time.Millisecond, "process %d", pid)
	}
}

// alive reports whether a process runs: one that nobody has waited for does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
