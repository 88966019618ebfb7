package launch_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"heartbeat/internal/testing/script"
)

// seat is a terminal that somebody sits at, with a command running in it.
type seat struct {
	t         *testing.T
	keys, tty *os.File
	cmd       *exec.Cmd
	before    *term.State
	shown     string
}

// sit starts a command in a new directory at a terminal of 30 rows and 90 columns.
func sit(t *testing.T, args ...string) *seat {
	t.Helper()
	s := &seat{t: t, cmd: exec.Command(args[0], args[1:]...)}
	var err error
	s.keys, s.tty, err = pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.keys.Close(); _ = s.tty.Close() }) // nobody writes to it any more
	require.NoError(t, pty.Setsize(s.keys, &pty.Winsize{Rows: 30, Cols: 90}))
	require.NoError(t, unix.SetNonblock(int(s.keys.Fd()), true)) // so that reads can be given up
	s.before, err = term.GetState(int(s.tty.Fd()))
	require.NoError(t, err)
	s.cmd.Dir = t.TempDir()
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = s.tty, s.tty, s.tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() { _ = s.cmd.Process.Kill() }) // it has ended, unless the test failed
	return s
}

// sees reads until the text is on the screen.
func (s *seat) sees(text string) {
	s.t.Helper()
	require.NoError(s.t, s.keys.SetReadDeadline(time.Now().Add(script.Patience)))
	chunk := make([]byte, 4096)
	for !strings.Contains(s.shown, text) {
		n, err := s.keys.Read(chunk)
		require.NoError(s.t, err, "no %q in %q", text, s.shown)
		s.shown += string(chunk[:n])
	}
}

func (s *seat) types(keys string) {
	_, err := s.keys.WriteString(keys)
	require.NoError(s.t, err)
}

// leaves waits for the end, and for the terminal to be as it was found.
func (s *seat) leaves(status int) {
	s.t.Helper()
	_ = s.cmd.Wait() // the status is looked at
	assert.Equal(s.t, status, s.cmd.ProcessState.ExitCode(), s.shown)
	after, err := term.GetState(int(s.tty.Fd()))
	require.NoError(s.t, err)
	assert.Equal(s.t, s.before, after, "the terminal is not as it was found")
}

func (s *seat) isRaw() bool {
	now, err := term.GetState(int(s.tty.Fd()))
	require.NoError(s.t, err)
	return !assert.ObjectsAreEqual(s.before, now)
}

func TestKeysArePassed(t *testing.T) {
	s := sit(t, "heartbeat-launch", "--", "sh", "-c", `echo begun; read line; echo "got $line"; read line; exit 5`)
	s.sees("begun")
	assert.True(t, s.isRaw())
	s.types("some text\r")
	s.sees("got some text")
	assert.Contains(t, s.shown, "some text\r\n", "the command's terminal echoes")
	assert.NotContains(t, s.shown, "some textsome text", "ours does not echo too")
	s.types("\r")
	s.leaves(5)
}

func TestInterruptKeyIsTheCommands(t *testing.T) {
	s := sit(t, "heartbeat-launch", "--", "sh", "-c", `trap 'echo interrupted; exit 6' INT; echo begun; while :; do sleep 0.01; done`)
	s.sees("begun")
	s.types("\x03")
	s.sees("interrupted")
	s.leaves(6)
}

func TestSizeFollows(t *testing.T) {
	s := sit(t, "heartbeat-launch", "--", "sh", "-c", `trap 'stty size; exit 0' WINCH; stty size; while :; do sleep 0.01; done`)
	s.sees("30 90")
	require.NoError(t, pty.Setsize(s.keys, &pty.Winsize{Rows: 41, Cols: 123}))
	s.sees("41 123")
	s.leaves(0)
}

func TestSizeOfTheFlagStays(t *testing.T) {
	s := sit(t, "heartbeat-launch", "--size", "11x22", "--", "sh", "-c", `stty size; read line; stty size`)
	s.sees("11 22")
	require.NoError(t, pty.Setsize(s.keys, &pty.Winsize{Rows: 41, Cols: 123}))
	s.types("\r")
	s.leaves(0)
	s.sees("11 22\r\n\r\n11 22")
}

// Keys go to the session that runs: here 200 in one process, one after the other.
func TestKeysGoToTheirSession(t *testing.T) {
	t.Parallel()
	const n = 200
	s := sit(t, "sessions", strconv.Itoa(n), "read")
	for i := range n {
		s.sees("ready")
		s.shown = ""
		s.types("some text\r")
		s.sees("some text, " + strconv.Itoa(i) + "\r\n")
		s.shown = s.shown[strings.Index(s.shown, ", "):]
	}
	s.leaves(0)
}

// The caller of a session is told all that happens in it.
func TestCallerIsTold(t *testing.T) {
	s := sit(t, "watched", "read")
	s.sees("size 30x90")
	s.sees("started")
	require.NoError(t, pty.Setsize(s.keys, &pty.Winsize{Rows: 41, Cols: 123}))
	s.sees("size 41x123")
	s.types("\r")
	s.sees("lives: false")
	assert.Contains(t, s.shown, `bye\r\n", quit: true, error: <nil>`)
	s.leaves(0)
}

// The terminal is restored however a session ends.
func TestTerminalIsRestored(t *testing.T) {
	const lives = "echo $$ > pid; echo begun; exec sleep 1000"
	for name, c := range map[string]struct {
		flags  []string
		end    func(s *seat)
		status int
	}{
		"command killed":   {nil, func(s *seat) { s.signal("pid", unix.SIGKILL) }, 137},
		"terminated":       {nil, func(s *seat) { require.NoError(t, s.cmd.Process.Signal(unix.SIGTERM)) }, 143},
		"terminal hung up": {nil, func(s *seat) { require.NoError(t, s.cmd.Process.Signal(unix.SIGHUP)) }, 129},
		"timeout":          {[]string{"--timeout", "0.3"}, func(*seat) {}, 124},
		"idle":             {[]string{"--idle-timeout", "0.3", "--max-idle-retries", "0"}, func(*seat) {}, 125},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"heartbeat-launch"}, c.flags...)
			s := sit(t, append(args, "--", "sh", "-c", lives)...)
			s.sees("begun")
			c.end(s)
			s.leaves(c.status)
		})
	}
	t.Run("not run", func(t *testing.T) { sit(t, "heartbeat-launch", "--", "/dev/null/nothing").leaves(127) })
	t.Run("ended by itself", func(t *testing.T) { sit(t, "heartbeat-launch", "--", "true").leaves(0) })
}

// After a SIGKILL the guardian restores the terminal, unless somebody else has set it
// meanwhile.
func TestTerminalIsRestoredAfterAKill(t *testing.T) {
	for name, meanwhile := range map[string]bool{"as it was found": false, "as somebody else has set it": true} {
		t.Run(name, func(t *testing.T) {
			s := sit(t, "heartbeat-launch", "--", "sh", "-c", "echo $HEARTBEAT_SESSION > mark; echo begun; exec sleep 1000")
			s.sees("begun")
			require.True(t, s.isRaw())
			text, err := os.ReadFile(filepath.Join(s.cmd.Dir, "mark"))
			require.NoError(t, err)
			mark := strings.TrimSpace(string(text))
			require.Eventually(t, func() bool { return guardianOf(mark) != 0 }, script.Patience, time.Millisecond)
			want := s.before
			if meanwhile {
				require.NoError(t, term.Restore(int(s.tty.Fd()), s.before))
				require.NoError(t, exec.Command("stty", "-F", s.tty.Name(), "-echo").Run())
				want, err = term.GetState(int(s.tty.Fd()))
				require.NoError(t, err)
			}
			require.NoError(t, s.cmd.Process.Kill())
			_ = s.cmd.Wait() // it was killed
			require.Eventually(t, func() bool { return guardianOf(mark) == 0 }, script.Patience, time.Millisecond)
			after, err := term.GetState(int(s.tty.Fd()))
			require.NoError(t, err)
			assert.Equal(t, want, after)
		})
	}
}

func (s *seat) signal(file string, sig unix.Signal) {
	require.NoError(s.t, unix.Kill(s.pid(file), sig))
}

func (s *seat) pid(file string) int {
	text, err := os.ReadFile(filepath.Join(s.cmd.Dir, file))
	require.NoError(s.t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(s.t, err)
	return pid
}

// A panic restores the terminal and ends the command.
func TestPanicRestoresTheTerminal(t *testing.T) {
	for where, says := range map[string]string{"loop": "panic: made up", "beside": "internal error: made up"} {
		t.Run(where, func(t *testing.T) {
			s := sit(t, "panicking", where)
			s.sees(says)
			s.leaves(0)
			if _, err := os.Stat(filepath.Join(s.cmd.Dir, "pid")); err == nil { // it came that far
				assert.True(t, script.Dead(s.pid("pid")))
			}
		})
	}
}

// A launcher in the background runs, although reading the terminal would stop it.
func TestInTheBackground(t *testing.T) {
	s := sit(t, "sh", "-c", `set -m; heartbeat-launch -- sh -c 'stty size; exit 3' & wait $!; echo "status $?"; exit 0`)
	s.sees("status 3")
	assert.Contains(t, s.shown, "30 90")
	s.leaves(0)
}

// Keys that the command does not read hold up nothing else.
func TestTypedAheadOfASlowReader(t *testing.T) {
	t.Parallel()
	s := sit(t, "heartbeat-launch", "--timeout", "1", "--", "sh", "-c", "stty raw -echo; echo begun; exec sleep 1000")
	s.sees("begun")
	go func() { _, _ = io.WriteString(s.keys, strings.Repeat("x", 100_000)) }() // it is cut off by the end
	s.leaves(124)
}
