package launch_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/script"
	"heartbeat/internal/testing/seat"
)

// sit starts a command in a new directory at a terminal of 30 rows and 90 columns.
func sit(t *testing.T, args ...string) *seat.Seat {
	t.Helper()
	s := seat.New(t, 30, 90, args...)
	s.Cmd.Dir = t.TempDir()
	s.Start()
	return s
}

func TestKeysArePassed(t *testing.T) {
	s := sit(t, "heartbeat-launch", "--", "sh", "-c", `echo begun; read line; echo "got $line"; read line; exit 5`)
	s.Prints("begun")
	assert.True(t, s.IsRaw())
	s.Types("some text\r")
	s.Prints("got some text")
	assert.Contains(t, s.Printed, "some text\r\n", "the command's terminal echoes")
	assert.NotContains(t, s.Printed, "some textsome text", "ours does not echo too")
	s.Types("\r")
	s.Leaves(5)
}

func TestInterruptKeyIsTheCommands(t *testing.T) {
	s := sit(t, "heartbeat-launch", "--", "sh", "-c", `trap 'echo interrupted; exit 6' INT; echo begun; while :; do sleep 0.01; done`)
	s.Prints("begun")
	s.Types("\x03")
	s.Prints("interrupted")
	s.Leaves(6)
}

func TestSizeFollows(t *testing.T) {
	s := sit(t, "heartbeat-launch", "--", "sh", "-c", `trap 'stty size; exit 0' WINCH; stty size; while :; do sleep 0.01; done`)
	s.Prints("30 90")
	s.Resizes(41, 123)
	s.Prints("41 123")
	s.Leaves(0)
}

func TestSizeOfTheFlagStays(t *testing.T) {
	s := sit(t, "heartbeat-launch", "--size", "11x22", "--", "sh", "-c", `stty size; read line; stty size`)
	s.Prints("11 22")
	s.Resizes(41, 123)
	s.Types("\r")
	s.Leaves(0)
	s.Prints("11 22\r\n\r\n11 22")
}

// A client that has no shell above it would wait for an fg for ever once it got ctrl-z, however the
// terminal says that key. A job of a shell gets it.
func TestNobodySuspendsTheLeader(t *testing.T) {
	s := sit(t, "heartbeat-launch", "--", "sh", "-c", "stty raw -echo; echo ready; head -c 4 | od -An -c; echo over")
	s.Prints("ready")
	s.Types("a\x1ab\x1b[122;5uc\x1b[122;133u\x1b[27;5;122~z")
	s.Prints("a   b   c   z")
	s.Leaves(0)

	s = sit(t, "heartbeat-launch", "--", "bash", "--norc", "-ic", "set -m; sh -c 'stty raw -echo; echo ready; head -c 1 | od -An -c'; true")
	s.Prints("ready")
	s.Types("\x1a")
	s.Prints("032")
	s.Leaves(0)
}

// Keys go to the session that runs: here 200 in one process, one after the other.
func TestKeysGoToTheirSession(t *testing.T) {
	t.Parallel()
	n := long.Rounds(40, 200)
	s := sit(t, "sessions", strconv.Itoa(n), "read")
	for i := range n {
		s.Prints("ready")
		s.Printed = ""
		s.Types("some text\r")
		s.Prints("some text, " + strconv.Itoa(i) + "\r\n")
		s.Printed = s.Printed[strings.Index(s.Printed, ", "):]
	}
	s.Leaves(0)
}

// The caller of a session is told all that happens in it.
func TestCallerIsTold(t *testing.T) {
	s := sit(t, "watched", "read")
	s.Prints("size 30x90")
	s.Prints("started")
	s.Resizes(41, 123)
	s.Prints("size 41x123")
	s.Types("\r")
	s.Prints("lives: false")
	assert.Contains(t, s.Printed, `bye\r\n", quit: true, error: <nil>`)
	s.Leaves(0)
}

// The terminal is restored however a session ends.
func TestTerminalIsRestored(t *testing.T) {
	const lives = "echo $$ > pid; echo begun; exec sleep 1000"
	for name, c := range map[string]struct {
		flags  []string
		end    func(s *seat.Seat)
		status int
	}{
		"command killed":   {nil, func(s *seat.Seat) { require.NoError(t, unix.Kill(pidIn(t, s, "pid"), unix.SIGKILL)) }, 137},
		"terminated":       {nil, func(s *seat.Seat) { require.NoError(t, s.Cmd.Process.Signal(unix.SIGTERM)) }, 143},
		"terminal hung up": {nil, func(s *seat.Seat) { require.NoError(t, s.Cmd.Process.Signal(unix.SIGHUP)) }, 129},
		"timeout":          {[]string{"--timeout", "4"}, func(*seat.Seat) {}, 124},
		"idle":             {[]string{"--idle-timeout", "4", "--max-idle-retries", "0"}, func(*seat.Seat) {}, 125},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"heartbeat-launch"}, c.flags...)
			s := sit(t, append(args, "--", "sh", "-c", lives)...)
			s.Prints("begun")
			c.end(s)
			s.Leaves(c.status)
		})
	}
	t.Run("not run", func(t *testing.T) { sit(t, "heartbeat-launch", "--", "/dev/null/nothing").Leaves(127) })
	t.Run("ended by itself", func(t *testing.T) { sit(t, "heartbeat-launch", "--", "true").Leaves(0) })
}

// After a SIGKILL the guardian restores the terminal, unless somebody else has set it
// meanwhile.
func TestTerminalIsRestoredAfterAKill(t *testing.T) {
	for name, meanwhile := range map[string]bool{"as it was found": false, "as somebody else has set it": true} {
		t.Run(name, func(t *testing.T) {
			s := sit(t, "heartbeat-launch", "--", "sh", "-c", "echo $HEARTBEAT_SESSION > mark; echo begun; exec sleep 1000")
			s.Prints("begun")
			require.True(t, s.IsRaw())
			text, err := os.ReadFile(filepath.Join(s.Cmd.Dir, "mark"))
			require.NoError(t, err)
			mark := strings.TrimSpace(string(text))
			require.Eventually(t, func() bool { return guardianOf(mark) != 0 }, script.Patience, time.Millisecond)
			want := s.Found
			if meanwhile {
				require.NoError(t, term.Restore(int(s.TTY.Fd()), s.Found))
				require.NoError(t, exec.Command("stty", "-F", s.TTY.Name(), "-echo").Run())
				want, err = term.GetState(int(s.TTY.Fd()))
				require.NoError(t, err)
			}
			require.NoError(t, s.Cmd.Process.Kill())
			_ = s.Cmd.Wait() // it was killed
			require.Eventually(t, func() bool { return guardianOf(mark) == 0 }, script.Patience, time.Millisecond)
			after, err := term.GetState(int(s.TTY.Fd()))
			require.NoError(t, err)
			assert.Equal(t, want, after)
		})
	}
}

// pidIn is the process that a file in the command's directory names.
func pidIn(t *testing.T, s *seat.Seat, file string) int {
	text, err := os.ReadFile(filepath.Join(s.Cmd.Dir, file))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return pid
}

// A panic restores the terminal and ends the command.
func TestPanicRestoresTheTerminal(t *testing.T) {
	for where, says := range map[string]string{"loop": "panic: made up", "beside": "internal error: made up"} {
		t.Run(where, func(t *testing.T) {
			s := sit(t, "panicking", where)
			s.Prints(says)
			s.Leaves(0)
			if _, err := os.Stat(filepath.Join(s.Cmd.Dir, "pid")); err == nil { // it came that far
				assert.True(t, script.Dead(pidIn(t, s, "pid")))
			}
		})
	}
}

// A launcher in the background runs, although reading the terminal would stop it.
func TestInTheBackground(t *testing.T) {
	s := sit(t, "sh", "-c", `set -m; heartbeat-launch -- sh -c 'stty size; exit 3' & wait $!; echo "status $?"; exit 0`)
	s.Prints("status 3")
	assert.Contains(t, s.Printed, "30 90")
	s.Leaves(0)
}

// Keys that the command does not read hold up nothing else.
func TestTypedAheadOfASlowReader(t *testing.T) {
	t.Parallel()
	s := sit(t, "heartbeat-launch", "--", "sh", "-c", "stty raw -echo; echo begun; exec sleep 1000")
	s.Prints("begun")
	typed := make(chan struct{})
	go func() {
		defer close(typed)
		_, _ = io.WriteString(s.Keys, strings.Repeat("x", 100_000))
	}()
	require.NoError(t, s.Cmd.Process.Signal(unix.SIGTERM))
	s.Leaves(143)
	<-typed // it was all taken, and nobody got it
}
