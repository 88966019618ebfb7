package hook_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
	"heartbeat/internal/testing/crash"
)

// TestRewakeInput checks what a client may rely on, whatever is on a background hook's stdin and in
// the inbox. Stdout is empty. The status is 0, 1 or 2, and 2 only with the text of the entry in
// flight.
func TestRewakeInput(t *testing.T) {
	queues := []string{"one\ntwo\n", `{"prompt":"in an envelope","id":"x"}` + "\n", "\"\"\n\" \"\n\xff\r\n", ""}
	for i, stdin := range []string{
		"", " \n", "{}", "null", "[]", "7", `"Stop"`, "{", "\x00", "\xff", `{"hook_event_name":7}`,
		`{"hook_event_name":"Stop","session_id":"s","prompt_id":"p","stop_hook_active":true,"last_assistant_message":"did it"}`,
		`{"hook_event_name":"Stop"}`,
		`{"hook_event_name":"Stop","session_id":"s","stop_hook_active":1}`,
		`{"hook_event_name":"Stop","session_id":"s","agent_id":"a"}`,
		`{"hook_event_name":"StopFailure","session_id":"s","error":"overloaded"}`,
		`{"hook_event_name":"StopFailure"}`,
		`{"hook_event_name":"SessionStart","session_id":"../s","source":"startup"}`,
		`{"hook_event_name":"SessionStart","session_id":"s","source":"compact"}`,
		`{"hook_event_name":"SessionEnd","session_id":"s"}`,
		`{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"hook blocking error from command"}`,
		`{"hook_event_name":"Notification","session_id":"s","notification_type":"permission_prompt"}`,
		`{"hook_event_name":"SubagentStop","agent_id":"a"}`,
		`{"hook_event_name":"Stop","hook_event_name":"Nonsense","session_id":"\ud800"}`,
	} {
		for j, queue := range queues {
			t.Run(fmt.Sprint(i, " ", j), func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "inbox.jsonl")
				require.NoError(t, os.WriteFile(path, []byte(queue), 0o600))
				for range 2 { // the second round may find an entry in flight
					wakeOrLeave(t, path, stdin)
				}
			})
		}
	}
}

// wakeOrLeave runs the hook until it has woken its session, or waits.
func wakeOrLeave(t *testing.T, path, stdin string) {
	t.Helper()
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- displace(ctx, box) }()
	r := crash.Command{
		Name: "command", Args: []string{"--inbox", path, "--rewake", "--settle", "0"}, Stdin: stdin,
		Env: []string{fmt.Sprintf("CLAUDE_PID=%d", os.Getpid()), "CLAUDE_CODE_ENTRYPOINT=cli"},
	}.Run(t)
	stop()
	require.NoError(t, <-stopped)

	assert.Zero(t, r.Signal)
	assert.Contains(t, []int{cli.ExitOK, cli.ExitError, hook.ExitWake}, r.ExitCode)
	assert.Empty(t, r.Stdout)
	assert.NotContains(t, r.Stderr, "internal error")
	if r.ExitCode != hook.ExitWake {
		return
	}
	v, err := box.View()
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	require.NotNil(t, v.InFlight())
	assert.NotEmpty(t, strings.TrimSpace(v.InFlight().Text()))
	assert.Equal(t, v.InFlight().Text()+"\n", ownPreamble.ReplaceAllString(r.Stderr, ""))
}

// displace repeatedly replaces the waiting hook, which then has no reason to wait.
func displace(ctx context.Context, box *inbox.Inbox) error {
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		tx, err := box.Begin(ctx)
		if ctx.Err() != nil && err != nil {
			return nil
		}
		if err != nil {
			return err
		}
		w, err := tx.Waiter()
		if err == nil && w != nil {
			tx.StopWaiting()
			err = tx.Commit()
		}
		if closed := tx.Close(); err != nil || closed != nil {
			return fmt.Errorf("%w, %w", err, closed)
		}
	}
}

// A hook with no named client and no living parent would wait for ever.
func TestRewakeWithoutAClient(t *testing.T) {
	t.Setenv("CLAUDE_PID", "")
	t.Setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
	for parent, want := range map[int]error{0: hook.ErrNoClient, 1: hook.ErrNoClient, os.Getpid(): nil} {
		assert.Equal(t, want, hook.Wakeable(parent), parent)
	}
	t.Setenv("CLAUDE_PID", fmt.Sprint(os.Getpid()))
	assert.NoError(t, hook.Wakeable(1), "a shell may be between them, and gone")
}
