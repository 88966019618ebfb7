package watching_test

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
)

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
	s := sit(t, "heartbeat-watch", root).start()
	s.sees("2 inboxes, 4 wait, 0 in flight", "> ci", "  mail", "no session")
	assert.True(t, s.isRaw())
	assert.NotRegexp(t, `\x1b\[3[0-9]m`, s.all.String(), "no colour")

	stop(t, mail, "", false)
	s.sees("1 in flight", "job-1", "answering")
	send(t, filepath.Join(root, "new"), "n", "new")
	s.sees("3 inboxes", "  new")

	s.types("\x1b[B") // down
	s.sees("> mail", "waiting for an answer to the entry job-1")
	s.types("p")
	s.sees("pause delivery in mail? y/n")
	s.types("n")
	s.sees("nothing was done")
	s.types("py")
	s.sees("paused since", "delivery is paused")
	s.types("ry")
	s.sees("delivery goes on", "!delivery is paused")

	s.types("\r")
	s.sees("> in flight  job-1", "waits      job-3")
	s.types("jcy")
	s.sees("canceled job-2", "dead letter  job-2")
	s.types("G")
	s.sees("> dead letter  job-2")
	s.types("uy")
	s.sees("requeued", "waits      job-2")

	stop(t, mail, "The thing is done.", true)
	s.sees("answered   job-1")
	s.types("G\r")
	s.sees("job-1  answered", "delivered", "REPLY", "The thing is done.")
	s.types("\x1b")
	s.sees("!REPLY")
	s.types("\x1b")
	s.sees("3 inboxes")
	s.types("?")
	s.sees("Nothing is done before you have said y.")
	s.types("?")
	s.sees("> mail")
	s.types("q")
	s.leaves(0)
}

func TestSmallTerminals(t *testing.T) {
	s := sit(t, "heartbeat-watch", two(t)).start()
	s.sees("> ci")
	s.resizes(5, 20)
	s.sees("> ci", "  mail", "!answering")
	s.resizes(1, 1)
	s.resizes(40, 160)
	s.sees("> ci", "no session")
	s.types("\x03")
	s.leaves(0)
}

// TestSignals holds that the terminal is restored whatever ends the program.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			s := sit(t, "heartbeat-watch", two(t)).start()
			s.sees("> ci")
			require.NoError(t, s.cmd.Process.Signal(sig))
			s.leaves(128 + int(sig))
		})
	}
}

// A terminal that takes no output holds nothing up for long.
func TestABlockedTerminal(t *testing.T) {
	s := sit(t, "heartbeat-watch", two(t)).start()
	s.sees("> ci")
	for range 200 { // each draws the screen anew, until nothing more fits
		s.types("\r?")
	}
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	_ = s.cmd.Wait() // the status is looked at
	assert.Equal(t, 128+int(syscall.SIGTERM), s.cmd.ProcessState.ExitCode())
	over := make(chan struct{})
	close(over)
	s.drains(over)
	s.isRestored()
}

// The end of the input, as when the terminal is gone, ends the program, also where it
// was told to outlive a hangup.
func TestTheEndOfTheInput(t *testing.T) {
	s := sit(t, "sh", "-c", "trap '' HUP; heartbeat-watch "+two(t)+" 2>err; echo $? > told; mv told status")
	s.cmd.Dir = t.TempDir()
	s.start()
	s.sees("> ci")
	require.NoError(t, s.tty.Close())
	require.NoError(t, s.keys.Close())
	_ = s.cmd.Wait() // the status is in the file
	status, err := os.ReadFile(filepath.Join(s.cmd.Dir, "status"))
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
	s.cmd.Env = append(s.cmd.Env, "PS1=ready$ ")
	s.start()
	s.sees("ready$")
	s.types("heartbeat-watch " + two(t) + "\r")
	s.sees("> ci")
	s.types("\x1a")
	s.prints("Stopped")
	s.types("stty -a | tr ' ' '\\n' | grep -x icanon && echo coo''ked\r")
	s.prints("cooked\r\n")
	s.all.Reset()
	s.types("fg\r")
	s.prints("\x1b[?1049h")
	s.sees("> ci", "no session")
	s.all.Reset()
	s.types("q")
	s.prints("ready$")
	s.types("echo $?, it is over\r")
	s.prints("0, it is over")
	s.types("exit\r")
	s.leaves(0)
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
	s := sit(t, "heartbeat-watch", root).start()
	s.sees("> box")
	s.types("\r")
	s.sees("answered", "waits")
	s.types("G\r")
	s.sees("REPLY")
	s.types("q")
	s.leaves(0)
	for _, command := range []string{"\x1b]52", "\x07", "\u202e", "\u009b", "approved\r", "\x1b[31m"} {
		assert.NotContains(t, s.all.String(), command)
	}
}

func TestNoTerminal(t *testing.T) {
	out, err := exec.Command("heartbeat-watch", t.TempDir()).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "a live view needs a terminal")
	s := sit(t, "heartbeat-watch", t.TempDir())
	s.cmd.Env = append(s.cmd.Env, "TERM=dumb")
	s.start()
	s.prints("TERM is dumb")
}
