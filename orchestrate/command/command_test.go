package command_test

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

	"heartbeat/orchestrate/command"
)

func sh(script string) command.Command {
	return command.Command{Argv: []string{"sh", "-c", script}, Timeout: time.Minute}
}

func TestRun(t *testing.T) {
	for script, want := range map[string]command.Outcome{
		"echo out; echo err >&2":       {Stdout: "out\n", Stderr: "err\n"},
		"echo out; exit 3":             {Stdout: "out\n", Status: 3, Failure: "it ended with status 3, and not 0"},
		"kill -9 $$":                   {Status: -1, Failure: "it ended with status -1, and not 0"},
		"sleep 1000 & echo started":    {Stdout: "started\n"}, // holds stdout open
		"trap '' HUP; echo $NAME >&2;": {Stderr: "value\n"},
	} {
		c := sh(script)
		c.Env = []string{"NAME=value"}
		assert.Equal(t, want, c.Run(context.Background()), script)
	}
	three := sh("exit 3")
	three.Success = 3
	assert.Empty(t, three.Run(context.Background()).Failure)
	missing := command.Command{Argv: []string{"no-such-command"}, Timeout: time.Minute}
	assert.Contains(t, missing.Run(context.Background()).Failure, "no-such-command")
}

// A command whose output is cut off failed.
func TestOutputIsBounded(t *testing.T) {
	o := sh("head -c 60000000 /dev/zero | tr '\\0' x").Run(context.Background())
	assert.True(t, o.Cut)
	assert.Len(t, o.Stdout, command.MaxOutput)
	assert.Zero(t, o.Status)
	assert.Contains(t, o.Failure, "cut off")
}

// No process of a command's group survives the end of the command, of its time, or of the
// context.
func TestItsFamilyEnds(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	t.Chdir(filepath.Dir(pids))
	const family = "echo $$ > pids; sh -c 'trap \"\" TERM; echo $$ >> pids; while :; do sleep 0.1; done' & "
	const lives = "while [ $(wc -l < pids) -lt 2 ]; do sleep 0.01; done; "

	short := sh(family + "wait")
	short.Timeout = 3 * time.Second
	assert.Equal(t, "it was ended after 3s", short.Run(context.Background()).Failure)
	assertGone(t, pids)

	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		for read, _ := os.ReadFile(pids); strings.Count(string(read), "\n") < 2; read, _ = os.ReadFile(pids) {
			time.Sleep(time.Millisecond)
		}
		cancel(errors.New("made up"))
	}()
	assert.Equal(t, "it was ended: made up", sh(family+"wait").Run(ctx).Failure)
	assertGone(t, pids)

	assert.Empty(t, sh(family+lives).Run(context.Background()).Failure)
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
		assert.Eventually(t, func() bool { return !runs(pid) }, time.Minute, time.Millisecond, "process %d", pid)
	}
}

// runs reports whether a process runs: one that nobody has waited for does not.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
