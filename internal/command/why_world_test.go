package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
)

// world is an inbox of its own, and a client that may be told to die.
type world struct {
	*testing.T
	dir, inbox string
	// asked is what status says, where that is not to be asked in this process.
	asked []byte
	kill  func() // the client, where one runs from the start
	// wokenWith is the text that woke the session last.
	wokenWith string
}

func newWorld(t *testing.T) *world {
	dir := t.TempDir()
	t.Setenv("CLAUDE_PID", "")
	t.Cleanup(func() { machine.TestOnlyBootID = "" })
	return &world{T: t, dir: dir, inbox: filepath.Join(dir, "inbox.jsonl")}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name, content string) {
	require.NoError(w, os.WriteFile(w.path(name), []byte(content), 0o600))
}

func (w *world) add(name, content string) {
	f, err := os.OpenFile(w.path(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	require.NoError(w, err)
	_, err = f.WriteString(content)
	require.NoError(w, errors.Join(err, f.Close()))
}

// queue appends entries, as other programs do.
func (w *world) queue(lines ...string) {
	for _, l := range lines {
		w.add("inbox.jsonl", l+"\n")
	}
}

// verb runs one in this process.
func (w *world) verb(name string, args ...string) []byte {
	var out, stderr bytes.Buffer
	anyCommand(append([]string{name, "--inbox", w.inbox}, args...), cli.Streams{Out: &out, Err: &stderr})
	return out.Bytes()
}

// input is what the client tells of session s1.
func (w *world) input(name string, members []string) *os.File {
	in := map[string]any{"hook_event_name": name, "session_id": "s1", "prompt_id": "p1", "stop_hook_active": false}
	for i := 0; i < len(members); i += 2 {
		in[members[i]] = members[i+1]
	}
	line, err := json.Marshal(in)
	require.NoError(w, err)
	stdin, err := os.CreateTemp(w.TempDir(), "stdin")
	require.NoError(w, err)
	w.Cleanup(func() { require.NoError(w, stdin.Close()) })
	_, err = stdin.Write(line)
	require.NoError(w, err)
	_, err = stdin.Seek(0, 0)
	require.NoError(w, err)
	return stdin
}

// event runs the hook in this process, for what the client tells of session s1.
func (w *world) event(name string, members ...string) {
	require.Equal(w, cli.ExitOK, w.hook(nil, name, members))
}

func (w *world) hook(flags []string, name string, members []string) (status int) {
	var out, stderr bytes.Buffer
	return anyCommand(append(flags, "--inbox", w.inbox), cli.Streams{In: w.input(name, members), Out: &out, Err: &stderr})
}

func (w *world) stop(reply string) { w.event("Stop", "last_assistant_message", reply) }

// answer ends the turn of the entry that is in flight.
func (w *world) answer() {
	w.stop("did it")
	require.FileExists(w, w.path(".results.jsonl"))
}

// client starts a process that passes for the client, and returns what kills it.
func (w *world) client() (kill func()) {
	cmd := exec.Command("sleep", "1h")
	require.NoError(w, cmd.Start())
	var gone bool
	kill = func() {
		if !gone {
			gone = true
			require.NoError(w, cmd.Process.Kill())
			require.Error(w, cmd.Wait())
		}
	}
	w.Cleanup(kill)
	w.Setenv("CLAUDE_PID", strconv.Itoa(cmd.Process.Pid))
	return kill
}

// holdLock has a child hold the inbox's lock.
func (w *world) holdLock() {
	cmd := exec.Command("hold-lock", w.path(".inbox-lock"))
	require.NoError(w, cmd.Start())
	w.Cleanup(func() {
		require.NoError(w, cmd.Process.Kill())
		require.Error(w, cmd.Wait())
	})
	require.Eventually(w, func() bool {
		_, err := os.Stat(w.path(".inbox-lock.held"))
		return err == nil
	}, 5*time.Minute, time.Millisecond)
}

// mount puts the inbox on a file system of that size.
func (w *world) mount(size string) {
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "none", w.dir).CombinedOutput(); err != nil {
		w.Skipf("cannot mount a file system: %s", out)
	}
	w.Cleanup(func() { require.NoError(w, exec.Command("umount", "-l", w.dir).Run()) })
}

func (w *world) fillDisk() {
	f, err := os.Create(w.path("fill"))
	require.NoError(w, err)
	_, err = f.Write(make([]byte, 64<<20))
	require.ErrorIs(w, err, unix.ENOSPC)
	require.NoError(w, f.Close())
}

// askAs has a plain user ask for the status.
func (w *world) askAs(mode os.FileMode) {
	const nobody = 65534
	if os.Geteuid() != 0 {
		w.Skip("needs root, to act as another user")
	}
	bin, err := exec.LookPath("heartbeat")
	require.NoError(w, err)
	for _, dir := range []string{filepath.Dir(w.dir), filepath.Dir(filepath.Dir(bin))} {
		require.NoError(w, os.Chmod(dir, 0o755))
	}
	require.NoError(w, os.Chmod(w.dir, mode))
	cmd := exec.Command(bin, "status", "--inbox", w.inbox, "--json")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	w.asked, _ = cmd.Output() // the status is 1 where nothing can be read
}

// give makes a plain user the owner of everything there.
func (w *world) give() {
	const nobody = 65534
	all, err := filepath.Glob(filepath.Join(w.dir, "*"))
	require.NoError(w, err)
	hidden, err := filepath.Glob(filepath.Join(w.dir, ".*"))
	require.NoError(w, err)
	for _, path := range append(append(all, hidden...), w.dir) {
		if filepath.Base(path) != "." && filepath.Base(path) != ".." && os.Geteuid() == 0 {
			require.NoError(w, os.Lchown(path, nobody, nobody))
		}
	}
}

// says is what status says of it.
func (w *world) says() (state, sentence string) {
	if w.asked == nil {
		w.asked = w.verb("status", "--json")
	}
	var s struct{ State, Why string }
	require.NoError(w, json.Unmarshal(w.asked, &s), "%s", w.asked)
	return s.State, s.Why
}

// sentence makes a pattern of a text in which <time> and the like stand for what
// differs from run to run.
func (w *world) sentence(text string) string {
	text = regexp.QuoteMeta(text)
	return "^" + strings.NewReplacer(
		"<time>", `20\d\d-\d\d-\d\d \d\d:\d\d:\d\d`, "<ago>", `\(\d+s ago\)`, "<n>", `\d+`, "<long>", `[0-9dhms ]+`, "<entry>", "[0-9a-f]{12}",
		"<path>", regexp.QuoteMeta(w.inbox), "<dir>", regexp.QuoteMeta(w.dir),
	).Replace(text) + "$"
}
