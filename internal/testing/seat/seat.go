// Package seat is a terminal that a test sits at, with a command running in it.
package seat

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

// Seat is one. Its command starts with [Seat.Start].
type Seat struct {
	Keys, TTY *os.File
	Cmd       *exec.Cmd
	Found     *term.State // how the terminal is set before the command runs
	Screen    *screen.Screen
	Printed   string // what was printed, unless the test takes it away

	t testing.TB
}

// New is a seat at a terminal of that size.
func New(t testing.TB, rows, cols int, args ...string) *Seat {
	t.Helper()
	s := &Seat{t: t, Cmd: exec.Command(args[0], args[1:]...)}
	var err error
	s.Keys, s.TTY, err = pty.Open()
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Keys.Close(); _ = s.TTY.Close() }) // nobody writes to it any more
	s.Resizes(rows, cols)
	s.Found, err = term.GetState(int(s.TTY.Fd()))
	require.NoError(t, err)
	s.Cmd.Stdin, s.Cmd.Stdout, s.Cmd.Stderr = s.TTY, s.TTY, s.TTY
	s.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return s
}

// Start starts the command.
func (s *Seat) Start() {
	s.t.Helper()
	require.NoError(s.t, s.Cmd.Start())
	s.t.Cleanup(func() { _ = s.Cmd.Process.Kill() }) // it has ended, unless the test failed
}

// Sees reads until the screen shows all of the texts, and none that begins with "!".
func (s *Seat) Sees(texts ...string) {
	s.t.Helper()
	s.reads(texts, func() bool {
		shown := s.Screen.Text()
		for _, text := range texts {
			absent, not := strings.CutPrefix(text, "!")
			if not == strings.Contains(shown, absent) {
				return false
			}
		}
		return true
	})
}

// Prints reads until the text was printed, be it on the screen or to the terminal.
func (s *Seat) Prints(text string) {
	s.t.Helper()
	s.reads(text, func() bool { return strings.Contains(s.Printed, text) })
}

func (s *Seat) reads(what any, enough func() bool) {
	s.t.Helper()
	require.NoError(s.t, s.Keys.SetReadDeadline(time.Now().Add(script.Patience)))
	for !enough() {
		require.NoError(s.t, s.read(), "no %q in %q, on:\n%s", what, s.Printed, s.Screen.Text())
	}
}

// Watches reads for so long what is printed.
func (s *Seat) Watches(d time.Duration) {
	s.t.Helper()
	require.NoError(s.t, s.Keys.SetReadDeadline(time.Now().Add(d)))
	for s.read() == nil {
	}
}

func (s *Seat) read() error {
	chunk := make([]byte, 4096)
	n, err := s.Keys.Read(chunk)
	s.Printed += string(chunk[:n])
	_, _ = s.Screen.Write(chunk[:n])
	return err
}

// Types types keys.
func (s *Seat) Types(keys string) {
	s.t.Helper()
	_, err := s.Keys.WriteString(keys)
	require.NoError(s.t, err)
}

// Resizes changes the terminal's size.
func (s *Seat) Resizes(rows, cols int) {
	s.t.Helper()
	s.Screen = screen.New(rows, cols)
	require.NoError(s.t, pty.Setsize(s.Keys, &pty.Winsize{Rows: uint16(rows), Cols: uint16(cols)}))
	require.NoError(s.t, unix.SetNonblock(int(s.Keys.Fd()), true)) // so that reads can be given up: Fd has undone that
}

// Leaves waits for the end, and for the terminal to be as it was found.
func (s *Seat) Leaves(status int) {
	s.t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = s.Cmd.Wait() // the status is looked at
	}()
	s.Drains(over)
	assert.Equal(s.t, status, s.Cmd.ProcessState.ExitCode(), s.Printed)
	assert.False(s.t, s.IsRaw(), "the terminal is not as it was found")
}

// Drains reads what is printed until the command is over.
func (s *Seat) Drains(over chan struct{}) {
	s.t.Helper()
	for limit := time.Now().Add(script.Patience); time.Now().Before(limit); {
		before, ended := len(s.Printed), false
		select {
		case <-over:
			ended = true // before this read, so that it finds the last words
		default:
		}
		require.NoError(s.t, s.Keys.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		_ = s.read() // mostly for want of anything
		if ended && len(s.Printed) == before {
			return
		}
	}
	require.Fail(s.t, "it did not end", s.Printed)
}

// IsRaw reports whether the terminal is set otherwise than it was found.
func (s *Seat) IsRaw() bool {
	s.t.Helper()
	now, err := term.GetState(int(s.TTY.Fd()))
	require.NoError(s.t, err)
	return !assert.ObjectsAreEqual(s.Found, now)
}
