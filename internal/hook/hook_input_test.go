package hook_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/hook"
)

// FuzzHookInput checks what a client may rely on, whatever is on stdin and in the inbox. The status
// is 0, or 1 for unreadable input. Stdout is empty or one JSON object. A printed entry is in
// flight.
func FuzzHookInput(f *testing.F) {
	for _, stdin := range []string{
		"", " \n", "{}", "null", "[]", "7", `"Stop"`, "{", "\x00", "\xff",
		`{"hook_event_name":"Stop","session_id":"s","prompt_id":"p","stop_hook_active":true,"last_assistant_message":"did it"}`,
		`{"hook_event_name":"Stop","session_id":"s","stop_hook_active":1}`,
		`{"hook_event_name":"StopFailure","session_id":"s","error":"overloaded"}`,
		`{"hook_event_name":"SessionStart","session_id":"../s","source":"startup"}`,
		`{"hook_event_name":"SessionEnd","session_id":"s"}`,
		`{"hook_event_name":"SubagentStop","agent_id":"a"}`,
		`{"hook_event_name":"Stop","hook_event_name":"Nonsense","session_id":"\ud800"}`,
	} {
		for _, queue := range []string{"one\ntwo\n", `{"prompt":"in an envelope","id":"x"}`, "\"\"\n\xff\r\n", ""} {
			f.Add([]byte(stdin), []byte(queue))
		}
	}
	f.Fuzz(func(t *testing.T, stdin, queue []byte) {
		if bytes.Contains(stdin, []byte("transcript")) {
			t.Skip("it could name any file of this machine")
		}
		dir := t.TempDir()
		path := filepath.Join(dir, "inbox.jsonl")
		require.NoError(t, os.WriteFile(path, queue, 0o600))
		for range 2 { // the second round may find an entry in flight
			fireFuzzed(t, dir, stdin, "--inbox", path, "--settle", "0")
		}
	})
}

// fireFuzzed runs the hook in this process, and checks what always holds.
func fireFuzzed(t *testing.T, dir string, stdin []byte, args ...string) {
	status, out, stderr := runWithStdin(t, stdin, args...)
	require.NotContains(t, stderr, "internal error")
	if status != cli.ExitOK {
		require.Equal(t, cli.ExitError, status, stderr)
		require.Contains(t, stderr, "nothing was changed")
		require.Empty(t, out)
	}
	if out == "" {
		return
	}
	var decision struct {
		Decision string  `json:"decision"`
		Reason   *string `json:"reason"`
	}
	in := json.NewDecoder(strings.NewReader(out))
	require.NoError(t, in.Decode(&decision), "%q", out)
	require.False(t, in.More(), "more than one object: %q", out)
	require.Equal(t, "block", decision.Decision)
	require.NotNil(t, decision.Reason)
	require.NotEmpty(t, strings.TrimSpace(*decision.Reason))
	require.True(t, utf8.ValidString(out))
	require.FileExists(t, filepath.Join(dir, ".in-flight"))
}

func runWithStdin(t *testing.T, stdin []byte, args ...string) (status int, out, stderr string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stdin")
	require.NoError(t, os.WriteFile(path, stdin, 0o600))
	in, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	var o, e bytes.Buffer
	status = anyCommand(args, cli.Streams{Command: hook.CommandName, In: in, Out: &o, Err: &e})
	return status, o.String(), e.String()
}

type panickingWriter struct{}

func (panickingWriter) Write([]byte) (int, error) { panic("broken on purpose") }

// TestPanicIsNoDecision: a panic ends with status 1 and a sentence. Go itself would end with status 2.
func TestPanicIsNoDecision(t *testing.T) {
	stop := []byte(`{"hook_event_name":"Stop","session_id":"s","prompt_id":"p","stop_hook_active":false}`)
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))

	t.Run("at the first change of the state", func(t *testing.T) {
		disk.TestOnlyObserver = func(disk.Op) error { panic("broken on purpose") }
		defer func() { disk.TestOnlyObserver = nil }()
		for _, args := range [][]string{{"--inbox", path}, {"recover", "--inbox", path}, {"send", "--inbox", path, "two"}} {
			status, out, stderr := runWithStdin(t, stop, args...)
			assert.Equal(t, cli.ExitError, status)
			assert.Empty(t, out)
			assert.Regexp(t, "^heartbeat(-stop)?: internal error: broken on purpose: please report it", stderr)
		}
	})
	t.Run("while it prints", func(t *testing.T) {
		var stderr bytes.Buffer
		assert.Equal(t, cli.ExitError, anyCommand([]string{"--help"}, cli.Streams{Command: hook.CommandName, In: os.Stdin, Out: panickingWriter{}, Err: &stderr}))
		assert.Regexp(t, "^heartbeat-stop: internal error: broken on purpose: ", stderr.String())
	})
}
