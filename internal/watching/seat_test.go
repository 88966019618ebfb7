package watching_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"heartbeat/internal/screen"
	"heartbeat/internal/testing/script"
)

// seat is a terminal that somebody sits at, with a command running in it.
type seat struct {
	t         *testing.T
	keys, tty *os.File
	cmd       *exec.Cmd
	before    *term.State
	screen    *screen.Screen
	all       strings.Builder // what was printed
}

// sit starts a command at a terminal of 24 rows and 80 columns, without colour.
func sit(t *testing.T, args ...string) *seat {
	t.Helper()
	s := &seat{t: t, cmd: exec.Command(args[0], args[1:]...), screen: screen.New(24, 80)}
	var err error
	s.keys, s.tty, err = pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.keys.Close(); _ = s.tty.Close() }) // nobody writes to it any more
	require.NoError(t, pty.Setsize(s.keys, &pty.Winsize{Rows: 24, Cols: 80}))
	require.NoError(t, unix.SetNonblock(int(s.keys.Fd()), true)) // so that reads can be given up
	s.before, err = term.GetState(int(s.tty.Fd()))
	require.NoError(t, err)
	s.cmd.Env = append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=1")
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = s.tty, s.tty, s.tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return s
}

func (s *seat) start() *seat {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Start())
	s.t.Cleanup(func() { _ = s.cmd.Process.Kill() }) // it has ended, unless the test failed
	return s
}

// sees reads until the screen shows all of the texts, and none that begins with "!".
func (s *seat) sees(texts ...string) {
	s.t.Helper()
	require.NoError(s.t, s.keys.SetReadDeadline(time.Now().Add(script.Patience)))
	chunk := make([]byte, 4096)
	for !s.shows(texts...) {
		n, err := s.keys.Read(chunk)
		require.NoError(s.t, err, "no %q on:\n%s", texts, s.screen.Text())
		s.all.Write(chunk[:n])
		_, _ = s.screen.Write(chunk[:n])
	}
}

func (s *seat) shows(texts ...string) bool {
	shown := s.screen.Text()
	for _, text := range texts {
		absent, not := strings.CutPrefix(text, "!")
		if not == strings.Contains(shown, absent) {
			return false
		}
	}
	return true
}

// prints reads until the text was printed, be it on the screen or to the terminal.
func (s *seat) prints(text string) {
	s.t.Helper()
	require.NoError(s.t, s.keys.SetReadDeadline(time.Now().Add(script.Patience)))
	chunk := make([]byte, 4096)
	for !strings.Contains(s.all.String(), text) {
		n, err := s.keys.Read(chunk)
		require.NoError(s.t, err, "no %q in %q", text, s.all.String())
		s.all.Write(chunk[:n])
		_, _ = s.screen.Write(chunk[:n])
	}
}

func (s *seat) types(keys string) {
	s.t.Helper()
	_, err := s.keys.WriteString(keys)
	require.NoError(s.t, err)
}

func (s *seat) resizes(rows, cols int) {
	s.t.Helper()
	s.screen = screen.New(rows, cols)
	require.NoError(s.t, pty.Setsize(s.keys, &pty.Winsize{Rows: uint16(rows), Cols: uint16(cols)}))
	require.NoError(s.t, unix.SetNonblock(int(s.keys.Fd()), true)) // Fd has undone that
}

// leaves waits for the end, and for the terminal to be as it was found.
func (s *seat) leaves(status int) {
	s.t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = s.cmd.Wait() // the status is looked at
	}()
	s.drains(over)
	assert.Equal(s.t, status, s.cmd.ProcessState.ExitCode(), s.all.String())
	s.isRestored()
}

// drains reads what is printed until the command is over.
func (s *seat) drains(over chan struct{}) {
	s.t.Helper()
	chunk := make([]byte, 4096)
	for limit := time.Now().Add(script.Patience); time.Now().Before(limit); {
		require.NoError(s.t, s.keys.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		n, _ := s.keys.Read(chunk) // mostly for want of anything
		s.all.Write(chunk[:n])
		select {
		case <-over:
			if n == 0 {
				return
			}
		default:
		}
	}
	require.Fail(s.t, "it did not end", s.all.String())
}

// isRestored checks the terminal's modes, and that its other screen is left and the
// cursor shown.
func (s *seat) isRestored() {
	s.t.Helper()
	after, err := term.GetState(int(s.tty.Fd()))
	require.NoError(s.t, err)
	assert.Equal(s.t, s.before, after, "the terminal is not as it was found")
	printed := s.all.String()
	assert.Greater(s.t, strings.LastIndex(printed, "\x1b[?1049l"), strings.LastIndex(printed, "\x1b[?1049h"), "the other screen is still shown")
	assert.Greater(s.t, strings.LastIndex(printed, "\x1b[?25h"), strings.LastIndex(printed, "\x1b[?25l"), "the cursor is still hidden")
}

func (s *seat) isRaw() bool {
	s.t.Helper()
	now, err := term.GetState(int(s.tty.Fd()))
	require.NoError(s.t, err)
	return !assert.ObjectsAreEqual(s.before, now)
}
