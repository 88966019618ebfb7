package watch_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/seat"
)

// sit is a seat at a terminal of 24 rows and 80 columns, without colour.
func sit(t testing.TB, args ...string) *seat.Seat {
	t.Helper()
	s := seat.New(t, 24, 80, args...)
	s.Cmd.Env = append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=1")
	return s
}

func started(t testing.TB, args ...string) *seat.Seat {
	t.Helper()
	s := sit(t, args...)
	s.Start()
	return s
}

// leaves waits for the end, and for the terminal to be as it was found.
func leaves(t testing.TB, s *seat.Seat, status int) {
	t.Helper()
	s.Leaves(status)
	isRestored(t, s)
}

// isRestored checks that the terminal's other screen is left and its cursor shown.
func isRestored(t testing.TB, s *seat.Seat) {
	t.Helper()
	assert.False(t, s.IsRaw(), "the terminal is not as it was found")
	assert.Greater(t, strings.LastIndex(s.Printed, "\x1b[?1049l"), strings.LastIndex(s.Printed, "\x1b[?1049h"), "the other screen is still shown")
	assert.Greater(t, strings.LastIndex(s.Printed, "\x1b[?25h"), strings.LastIndex(s.Printed, "\x1b[?25l"), "the cursor is still hidden")
}

// send adds an entry to an inbox of that folder.
func send(t *testing.T, dir, id, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	out, err := exec.Command("heartbeat", "send", "--inbox", filepath.Join(dir, "inbox.jsonl"), "--id", id, text).CombinedOutput()
	require.NoError(t, err, string(out))
}

// stop has the hook take up the next entry, and answer the one before.
func stop(t *testing.T, dir, reply string, again bool) {
	t.Helper()
	input, err := json.Marshal(map[string]any{
		"session_id": "3f1c2ab8-328b-4121-8f97-7f6c95137940", "prompt_id": "p", "hook_event_name": "Stop",
		"stop_hook_active": again, "last_assistant_message": reply,
	})
	require.NoError(t, err)
	cmd := exec.Command("heartbeat-stop", "--inbox", filepath.Join(dir, "inbox.jsonl"))
	read, write, err := os.Pipe()
	require.NoError(t, err)
	_, err = write.Write(input)
	require.NoError(t, err)
	require.NoError(t, write.Close())
	cmd.Stdin = read
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, read.Close())
}

// two are folders with inboxes: mail has three entries, ci one.
func two(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, id := range []string{"job-1", "job-2", "job-3"} {
		send(t, filepath.Join(root, "mail"), id, "do "+id)
	}
	send(t, filepath.Join(root, "ci"), "build", "build it")
	return root
}

// TestWatching is a person who looks, steers, and reads a reply.
func TestWatching(t *testing.T) {
	root := two(t)
	mail := filepath.Join(root, "mail")
	s := started(t, "heartbeat", "watch", root)
	s.Sees("2 inboxes, 4 wait, 0 in flight", "> ci", "  mail", "no session")
	assert.True(t, s.IsRaw())
	assert.NotRegexp(t, `\x1b\[3[0-9]m`, s.Printed, "no colour")

	stop(t, mail, "", false)
	s.Sees("1 in flight", "job-1", "answering")
	send(t, filepath.Join(root, "new"), "n", "new")
	s.Sees("3 inboxes", "  new")

	s.Types("\x1b[B") // down
	s.Sees("> mail", "waiting for an answer to the entry job-1")
	s.Types("p")
	s.Sees("pause delivery in mail? y/n")
	s.Types("n")
	s.Sees("nothing was done")
	s.Types("py")
	s.Sees("paused since", "delivery is paused")
	s.Types("ry")
	s.Sees("delivery goes on", "!delivery is paused")

	s.Types("\r")
	s.Sees("> in flight  job-1", "waits      job-3")
	s.Types("jcy")
	s.Sees("canceled job-2", "dead letter  job-2")
	s.Types("G")
	s.Sees("> dead letter  job-2")
	s.Types("uy")
	s.Sees("requeued", "waits      job-2")

	stop(t, mail, "The thing is done.", true)
	s.Sees("answered   job-1")
	s.Types("G\r")
	s.Sees("job-1  answered", "delivered", "REPLY", "The thing is done.")
	s.Types("\x1b")
	s.Sees("!REPLY")
	s.Types("\x1b")
	s.Sees("3 inboxes")
	s.Types("?")
	s.Sees("Nothing is done before you have said y.")
	s.Types("?")
	s.Sees("> mail")
	s.Types("q")
	leaves(t, s, 0)
}

func TestSmallTerminals(t *testing.T) {
	s := started(t, "heartbeat", "watch", two(t))
	s.Sees("> ci")
	s.Resizes(5, 20)
	s.Sees("> ci", "  mail", "!answering")
	s.Resizes(1, 1)
	s.Resizes(40, 160)
	s.Sees("> ci", "no session")
	s.Types("\x03")
	leaves(t, s, 0)
}

// TestSignals holds that the terminal is restored whatever ends the program.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			s := started(t, "heartbeat", "watch", two(t))
			s.Sees("> ci")
			require.NoError(t, s.Cmd.Process.Signal(sig))
			leaves(t, s, 128+int(sig))
		})
	}
}

// A terminal that takes no output holds nothing up for long.
func TestABlockedTerminal(t *testing.T) {
	s := started(t, "heartbeat", "watch", two(t))
	s.Sees("> ci")
	for range 200 { // each draws the screen anew, until nothing more fits
		s.Types("\r?")
	}
	require.NoError(t, s.Cmd.Process.Signal(syscall.SIGTERM))
	_ = s.Cmd.Wait() // the status is looked at
	assert.Equal(t, 128+int(syscall.SIGTERM), s.Cmd.ProcessState.ExitCode())
	assert.False(t, s.IsRaw(), "the terminal is not as it was found")
}

// The end of the input, as when the terminal is gone, ends the program, also where it
// was told to outlive a hangup.
func TestTheEndOfTheInput(t *testing.T) {
	s := sit(t, "sh", "-c", "trap '' HUP; heartbeat watch "+two(t)+" 2>err; echo $? > told; mv told status")
	s.Cmd.Dir = t.TempDir()
	s.Start()
	s.Sees("> ci")
	require.NoError(t, s.TTY.Close())
	require.NoError(t, s.Keys.Close())
	_ = s.Cmd.Wait() // the status is in the file
	status, err := os.ReadFile(filepath.Join(s.Cmd.Dir, "status"))
	require.NoError(t, err)
	assert.Equal(t, "0\n", string(status))
}

// A shell stops it by ^Z, has its terminal back meanwhile, and continues it.
func TestStopping(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here: it has the jobs that ^Z needs")
	}
	s := sit(t, shell, "--norc", "-i")
	s.Cmd.Env = append(s.Cmd.Env, "PS1=ready$ ")
	s.Start()
	s.Sees("ready$")
	s.Types("heartbeat watch " + two(t) + "\r")
	s.Sees("> ci")
	s.Types("\x1a")
	s.Prints("Stopped")
	s.Types("stty -a | tr ' ' '\\n' | grep -x icanon && echo coo''ked\r")
	s.Prints("cooked\r\n")
	s.Printed = ""
	s.Types("fg\r")
	s.Prints("\x1b[?1049h")
	s.Sees("> ci", "no session")
	s.Printed = ""
	s.Types("q")
	s.Prints("ready$")
	s.Types("echo $?, it is over\r")
	s.Prints("0, it is over")
	s.Types("exit\r")
	leaves(t, s, 0)
}

// Hostile texts act on no terminal, wherever they are shown.
func TestHostileTexts(t *testing.T) {
	root := t.TempDir()
	evil := "\x1b]52;c;eA==\x07\x1b[2Japproved\rdenied\u202e\u009b31m"
	dir := filepath.Join(root, "box")
	require.NoError(t, os.Mkdir(dir, 0o700))
	var lines strings.Builder
	for range 3 {
		line, err := json.Marshal(map[string]string{"id": evil, "prompt": evil})
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
	}
	lines.WriteString(evil + " raw\n\xff\xfe\n日本語" + strings.Repeat("の", 300) + "\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "inbox.jsonl"), []byte(lines.String()), 0o600))
	stop(t, dir, "", false)
	stop(t, dir, evil, true)
	out, err := exec.Command("heartbeat", "pause", "--inbox", filepath.Join(dir, "inbox.jsonl"), "--reason", evil).CombinedOutput()
	require.NoError(t, err, string(out))
	s := started(t, "heartbeat", "watch", root)
	s.Sees("> box")
	s.Types("\r")
	s.Sees("answered", "waits")
	s.Types("G\r")
	s.Sees("REPLY")
	s.Types("q")
	leaves(t, s, 0)
	for _, command := range []string{"\x1b]52", "\x07", "\u202e", "\u009b", "approved\r", "\x1b[31m"} {
		assert.NotContains(t, s.Printed, command)
	}
}

func TestNoTerminal(t *testing.T) {
	out, err := exec.Command("heartbeat", "watch", t.TempDir()).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "a live view needs a terminal")
	s := sit(t, "heartbeat", "watch", t.TempDir())
	s.Cmd.Env = append(s.Cmd.Env, "TERM=dumb")
	s.Start()
	s.Prints("TERM is dumb")
}
