package command_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/script"
)

// waiter is a verb that waits at a terminal.
type waiter struct {
	cmd      *exec.Cmd
	terminal *os.File
	seen     string
}

func waitsAtATerminal(t *testing.T, columns uint16, args ...string) *waiter {
	t.Helper()
	cmd := exec.Command("heartbeat", args...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "TERM=xterm")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: columns})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, terminal.Close()) })
	require.NoError(t, terminal.SetReadDeadline(time.Now().Add(script.Patience)))
	return &waiter{cmd: cmd, terminal: terminal}
}

func (w *waiter) until(t *testing.T, pattern string) {
	t.Helper()
	chunk := make([]byte, 4096)
	for shown := regexp.MustCompile(pattern); !shown.MatchString(w.seen); {
		n, err := w.terminal.Read(chunk)
		require.NoError(t, err, "%q in %q", pattern, w.seen)
		w.seen += string(chunk[:n])
	}
}

// end reads the rest, and returns what stands on the terminal in the end.
func (w *waiter) end(t *testing.T, status int) string {
	t.Helper()
	rest, _ := io.ReadAll(w.terminal) // the other side is gone in the end, which reads as an error
	_ = w.cmd.Wait()
	assert.Equal(t, status, w.cmd.ProcessState.ExitCode())
	w.seen += string(rest)
	var stands []string
	for _, line := range strings.Split(w.seen, "\r\n") {
		stands = append(stands, line[strings.LastIndex(line, cleared)+1:])
	}
	return strings.ReplaceAll(strings.Join(stands, "\n"), cleared[1:], "")
}

const cleared = "\r\x1b[K"

// TestSendWaitsAtATerminal shows on one line what is waited for, and takes it away before
// the reply.
func TestSendWaitsAtATerminal(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(inbox, []byte("one\n\ntwo\n"), 0o600))
	w := waitsAtATerminal(t, 80, "send", "--inbox", inbox, "--wait", "--id", "job-7", "three")
	w.until(t, `job-7 is queued behind 2, [1-9]\d*s`)
	stop(t, inbox, 0, "ready")
	// The one in flight is among those before it.
	stop(t, inbox, 1, "reply one")
	w.until(t, `job-7 is queued behind 1, \d+s`)
	stop(t, inbox, 2, "reply two")
	w.until(t, `session 3f1c2ab8 answers job-7, [1-9]\d*s`)
	stop(t, inbox, 3, "reply three")
	assert.Equal(t, "reply three\n", w.end(t, 0), "%q", w.seen)
}

// TestAskWaitsAtATerminal shows the same line, and takes it away before it says what came of
// it.
func TestAskWaitsAtATerminal(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(inbox, []byte("one\n"), 0o600))
	ask := []string{"ask", "--inbox", inbox, "--no-session", "--id", "job-7", "two"}
	w := waitsAtATerminal(t, 80, ask...)
	w.until(t, `job-7 is queued behind 1, [1-9]\d*s`)
	require.NoError(t, w.cmd.Process.Signal(syscall.SIGINT))
	assert.Regexp(t, `^heartbeat: ended by interrupt: job-7: it stays queued: [^\r]*\n$`, w.end(t, 128+2))

	w = waitsAtATerminal(t, 80, ask...)
	w.until(t, `job-7 is queued behind 1, [1-9]\d*s`)
	stop(t, inbox, 0, "ready")
	stop(t, inbox, 1, "reply one")
	w.until(t, `session 3f1c2ab8 answers job-7, [1-9]\d*s`)
	stop(t, inbox, 2, "reply two")
	assert.Equal(t, "heartbeat: job-7 was answered\nreply two\n", w.end(t, 0), "%q", w.seen)
}

// TestSendWaitsForWhatIsScheduled until a signal ends that, on a clean line.
func TestSendWaitsForWhatIsScheduled(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	w := waitsAtATerminal(t, 30, "send", "--inbox", inbox, "--wait", "--id", "job-7", "--not-before", "1h", "three")
	w.until(t, `job-7 is scheduled for 202\d-…`)
	require.NoError(t, w.cmd.Process.Signal(syscall.SIGTERM))
	assert.Regexp(t, `^heartbeat: ended by\nterminated: the entry "job-7"\n`, w.end(t, 128+15))
}

// TestLogFollowsAtATerminal shows below the events what is waited for.
func TestLogFollowsAtATerminal(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(inbox, []byte("one\n"), 0o600))
	w := waitsAtATerminal(t, 80, "log", "--inbox", inbox, "--follow")
	w.until(t, `nothing is in flight, 1 queued, [1-9]\d*s`)
	stop(t, inbox, 0, "ready")
	w.until(t, cleared[:1]+`\x1b\[K[^\r\n]*TIME +EVENT +ENTRY[^\r\n]*\r\n[^\r\n]*delivered `)
	w.until(t, `session 3f1c2ab8 answers \S+, 0 queued, [1-9]\d*s`)
	require.NoError(t, w.cmd.Process.Signal(syscall.SIGINT))
	shown := w.end(t, 128+2)
	assert.NotContains(t, shown, "queued, ", "%q", w.seen)
}

// TestWhatIsWaitedForIsNotPiped is what holds where no terminal is there to show it.
func TestWhatIsWaitedForIsNotPiped(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	cmd := exec.Command("heartbeat", "send", "--inbox", inbox, "--wait", "--timeout", "2.5s", "one")
	out, err := cmd.CombinedOutput()
	assert.Error(t, err)
	assert.NotContains(t, string(out), "\x1b")
	assert.Regexp(t, `^heartbeat: the entry "[^"]+" was not answered within 2.5s: it stays queued[^\n]*\n$`, string(out))
}
