package client

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
	"heartbeat/internal/testing/script"
)

// patience bounds every wait of these tests. They normally take far less, but not on a
// machine that is twenty times slower because of all else that it does. No test passes
// because of it.
const patience = 10 * time.Minute

// within is a context that ends after patience.
func within(t *testing.T) context.Context { return ending(t, patience) }

// ending is a context that ends after so long, and in time for the test to say what it waited
// for before go test ends the whole program.
func ending(t *testing.T, after time.Duration) context.Context {
	end := time.Now().Add(after)
	if last, ok := t.Deadline(); ok && last.Add(-lastWords).Before(end) {
		end = last.Add(-lastWords)
	}
	ctx, cancel := context.WithDeadline(t.Context(), end)
	t.Cleanup(cancel)
	return ctx
}

// Steps that a limit covers, as so many starts of a command.
const (
	commands = 50  // a few commands one after the other
	clients  = 200 // the start of a client, and its first turns
)

// unhurried is a limit of the product's that a test waits out, in whole seconds: as long as a
// quiet machine needs for what comes before it, and longer by what the steps take on this one
// now.
func unhurried(t testing.TB, quiet time.Duration, steps int) time.Duration {
	t.Helper()
	stop, err := buildOnce()
	require.NoError(t, err)
	var slowest time.Duration
	for range 3 {
		began := time.Now()
		require.NoError(t, exec.Command(besideHook(stop), "version").Run())
		slowest = max(slowest, time.Since(began))
	}
	return (quiet + min(time.Duration(steps)*slowest, patience/2)).Truncate(time.Second)
}

// lastWords is how long a test that has waited in vain takes to say so, and to end what it started.
const lastWords = 30 * time.Second

// workspace is a workspace around some client.
func workspace(t *testing.T, binary string, script model.Script) *Workspace {
	t.Helper()
	model, err := model.Start(script)
	require.NoError(t, err)
	t.Cleanup(model.Close)
	return New(t, binary, model)
}

// fake is a workspace whose client is a shell script.
func fake(t *testing.T, script string) *Workspace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "client")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	return workspace(t, path, nil)
}

func TestNothingButPathIsInherited(t *testing.T) {
	t.Setenv("CLAUDECODE", "1")
	t.Setenv("CLAUDE_CODE_SESSION_ID", "someone-else")
	w := fake(t, `env | cut -d= -f1 | sort | tr '\n' ' '; pwd; echo "$EXTRA" >&2`)
	result, err := w.Print("hi", Options{Env: []string{"EXTRA=more"}}).Wait(within(t))
	require.NoError(t, err)
	assert.Equal(t, "ANTHROPIC_API_KEY ANTHROPIC_BASE_URL CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC DISABLE_AUTOUPDATER "+
		"DISABLE_TELEMETRY EXTRA HOME PATH PWD TERM "+w.Project+"\n", result.Stdout)
	assert.Equal(t, "more\n", result.Stderr)
	assert.Zero(t, result.ExitCode)
}

func TestArgumentsAndExitCode(t *testing.T) {
	w := fake(t, `printf '%s|' "$@"; exit 3`)
	run := w.Print("hi there", Options{Settings: "file", Resume: "id", Args: []string{"--model", "m"}})
	result, err := run.Wait(within(t))
	require.NoError(t, err)
	assert.Equal(t, "--settings|file|--resume|id|--model|m|-p|hi there|", result.Stdout)
	assert.Equal(t, 3, result.ExitCode)
	require.ErrorIs(t, run.Signal(syscall.SIGTERM), os.ErrProcessDone)
}

func TestWaitEndsWithItsContext(t *testing.T) {
	w := fake(t, "exec sleep 60")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run := w.Print("hi", Options{})
	_, err := run.Wait(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, err = run.ExitCode()
	require.ErrorContains(t, err, "still running")
}

// pidIn waits for a file that a fake client writes, and returns the process id
// in it.
func pidIn(t *testing.T, path string) int {
	t.Helper()
	var pid int
	require.Eventually(t, func() bool {
		raw, err := os.ReadFile(path)
		return err == nil && json.Unmarshal(raw, &pid) == nil
	}, patience, poll)
	return pid
}

func TestKillReachesTheWholeGroup(t *testing.T) {
	w := fake(t, `sleep 60 & echo $! >child; wait`)
	run := w.Print("hi", Options{})
	child := pidIn(t, filepath.Join(w.Project, "child"))
	run.Kill()
	run.Kill()
	result, err := run.Wait(within(t))
	require.NoError(t, err)
	assert.Equal(t, 128+int(syscall.SIGKILL), result.ExitCode)
	require.Eventually(t, func() bool { return script.Dead(child) }, patience, poll)
}

func TestCleanupSweepsWhatLeftTheGroup(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("finding processes by their environment needs /proc")
	}
	var child int
	t.Run("inner", func(t *testing.T) {
		w := fake(t, `setsid sleep 60 & echo $! >child`)
		_, err := w.Print("hi", Options{}).Wait(within(t))
		require.NoError(t, err)
		child = pidIn(t, filepath.Join(w.Project, "child"))
		require.False(t, script.Dead(child))
	})
	require.Eventually(t, func() bool { return script.Dead(child) }, patience, poll)
}

func TestInteractiveTypesIntoATerminal(t *testing.T) {
	w := fake(t, `test -t 0 || exit 9
trap 'exit 7' TERM
printf '\033[1m❯\033[0m '
read -r line; printf 'got\033[1C<%s>\n' "$line"
read -r key
while :; do sleep 0.01; done`)
	ctx := within(t)
	s := w.Interactive(Options{})
	require.NoError(t, s.WaitReady(ctx))
	require.NoError(t, s.Submit(ctx, "hello there"))
	from, err := s.WaitScreen(ctx, 0, "got <hello there>")
	require.NoError(t, err)
	assert.LessOrEqual(t, from, len(s.Screen()))
	require.NoError(t, s.Esc())
	require.NoError(t, s.Enter())
	_, err = s.WaitScreen(ctx, 0, "^[")
	require.NoError(t, err)
	require.NoError(t, s.Signal(syscall.SIGTERM))
	code, err := s.Wait(ctx)
	require.NoError(t, err)
	assert.Equal(t, 7, code)
	_, err = s.WaitScreen(ctx, 0, "never")
	require.ErrorContains(t, err, "the terminal closed")
}

func TestWaitScreenEndsWithItsContext(t *testing.T) {
	w := fake(t, "exec sleep 60")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.Interactive(Options{}).WaitScreen(ctx, 0, "never")
	require.ErrorIs(t, err, context.Canceled)
}

func TestPlain(t *testing.T) {
	for raw, want := range map[string]string{
		"\x1b[38;5;174m❯\u00a0\x1b[7m \x1b[27mhello\x1b[9Gwörld": "❯hellowörld",
		"\x1b]0;✳ title\aa\x1b]8;id=x;http://h\x1b\\b":           "ab",
		"\x1b7\x1b[r\x1b8\x1b(Bone\r\n\ttwo\x1bP>|x\x1b\\":       "onetwo",
	} {
		assert.Equal(t, want, plain([]byte(raw)))
	}
}

func TestRecordedEvents(t *testing.T) {
	w := fake(t, "true")
	for _, input := range []string{`{"source":"startup"}`, `{"source":"resume","n":2}`} {
		command := w.recorder("SessionStart")
		cmd := w.command(Options{})
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", command}
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err)
		require.Empty(t, out, "a recorder must not decide anything")
	}
	second, err := w.WaitEvent(within(t), "SessionStart", 2)
	require.NoError(t, err)
	assert.Equal(t, "resume", second.Text("source"))
	assert.Empty(t, second.Text("n"), "not a string")
	require.Len(t, w.Events("SessionStart"), 2)
	assert.Equal(t, "startup", w.Events("SessionStart")[0].Text("source"))
	assert.Empty(t, w.Events("Stop"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.WaitEvent(ctx, "Stop", 1)
	require.ErrorIs(t, err, context.Canceled)
}
