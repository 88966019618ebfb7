package hook_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

// hostile lists what another user may put in place of a state file.
var hostile = map[string]func(path string) error{
	"FIFO":   func(path string) error { return unix.Mkfifo(path, 0o600) },
	"device": func(path string) error { return os.Symlink("/dev/zero", path) },
	"folder": func(path string) error { return os.Mkdir(path, 0o700) },
}

// stateFiles lie beside an inbox.
var stateFiles = []string{
	".inbox-offset", ".in-flight", ".responded", ".dead-letter.jsonl", ".results.jsonl", ".events.jsonl",
	".scheduled.jsonl", ".inbox-journal", ".inbox-lock", ".results.jsonl.foreign",
}

var hostileCalls = [][]string{
	{}, {"status"}, {"peek"}, {"results"}, {"log"}, {"metrics"}, {"dead-letter", "list"}, {"dead-letter", "requeue", "--all"},
	{"send", "--id", "x", "text"}, {"recover"}, {"recover", "--adopt"}, {"pause"}, {"compact", "--keep", "0"}, {"doctor"},
}

// hostileMemory is more than any command takes, and far less than the files claim to hold.
const hostileMemory = 700 << 10 // KiB

// With anything in place of a state file, every verb and the hook still end, do not read it into
// memory, and explain a failure in a sentence.
func TestHostileStateFiles(t *testing.T) {
	self, err := exec.LookPath("heartbeat-stop")
	require.NoError(t, err)
	for w, what := range slices.Sorted(maps.Keys(hostile)) {
		for n, name := range stateFiles {
			t.Run(what+" "+name, func(t *testing.T) {
				t.Parallel()
				for c, args := range hostileCalls {
					if !long.Wanted() && c%4 != (w+n)%4 {
						continue
					}
					dir := t.TempDir()
					inbox := filepath.Join(dir, "inbox.jsonl")
					require.NoError(t, os.WriteFile(inbox, []byte("one\n"), 0o600))
					require.NoError(t, hostile[what](filepath.Join(dir, name)))
					callHostile(t, self, dir, append(args, "--inbox", inbox))
				}
			})
		}
	}
}

func callHostile(t *testing.T, self, dir string, args []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a hang, even on the slowest machine
	defer cancel()
	if args[0] == "doctor" {
		args = append(args, "--project", dir)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(`{"session_id":"s","prompt_id":"p","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"hi"}`)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	crash.ForgetPeak()
	err := cmd.Run()
	require.NoError(t, ctx.Err(), "%v does not end", args)
	status := cmd.ProcessState.ExitCode()
	assert.Contains(t, []int{0, 1}, status, "%v: %v: %s", args, err, stderr.String())
	said := stderr.String()
	if args[0] == "doctor" || args[0] == "status" {
		said = stdout.String() // it says there what is wrong
	}
	if status == 1 {
		assert.NotEmpty(t, said, "%v fails without a sentence", args)
	}
	assert.NotContains(t, stderr.String(), "goroutine", "%v", args)
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		assert.Less(t, usage.Maxrss, int64(hostileMemory), "%v takes too much memory", args)
	}
}
