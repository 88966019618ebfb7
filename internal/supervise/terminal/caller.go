package terminal

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"heartbeat/internal/machine/guardian"
)

// caller is the terminal that this process was started from, if any.
type caller struct {
	typing *os.File // stdin, if it is a terminal whose keys go to the command
	sized  *os.File // the first of stdin, stdout and stderr with a size to follow
	state  *term.State
	found  *guardian.Terminal // its first state, for the guardian
}

func findCaller(stdin, stdout, stderr *os.File) (c caller) {
	for _, f := range []*os.File{stdin, stdout, stderr} {
		if c.sized == nil && term.IsTerminal(int(f.Fd())) {
			c.sized = f
		}
	}
	if c.sized == stdin && stdin != nil && inForeground(stdin) {
		c.typing = stdin
	}
	return c
}

// inForeground reports whether this process may read the terminal: the system stops a background
// process that does. Any process may read a terminal other than its controlling one.
func inForeground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// raw sets the terminal to raw mode, so that every key arrives as it is typed.
func (c *caller) raw() error {
	if c.typing == nil {
		return nil
	}
	if c.found == nil {
		c.found, _ = guardian.TerminalOf(c.typing) // if it fails, nobody restores the terminal after a SIGKILL
	}
	state, err := term.MakeRaw(int(c.typing.Fd()))
	if err != nil {
		return fmt.Errorf("pass the keys on: %w: the terminal on stdin cannot be set to raw (use </dev/null to go without it)", err)
	}
	if c.state == nil {
		c.state = state
	}
	return nil
}

// restore sets the terminal back to its first state and drops unread input. It leaves alone a
// terminal that another program has taken over.
func (c *caller) restore() {
	if c.state == nil || !inForeground(c.typing) {
		return
	}
	_ = term.Restore(int(c.typing.Fd()), c.state) // fails if it is gone
	forget(int(c.typing.Fd()))
}

// Forget drops unread input of a terminal: nobody can tell whom it was for.
func Forget(f *os.File) {
	if term.IsTerminal(int(f.Fd())) && inForeground(f) {
		forget(int(f.Fd()))
	}
}

// lend copies the caller's terminal settings to the command's terminal.
func (c *caller) lend(tty *os.File) {
	if c.typing == nil {
		return
	}
	if settings, err := unix.IoctlGetTermios(int(c.typing.Fd()), getTermios); err == nil {
		_ = unix.IoctlSetTermios(int(tty.Fd()), setTermios, settings) // on an error the default settings will do
	}
}

// Size is a terminal's size, and a flag's value.
type Size struct{ Rows, Cols uint16 }

// DefaultSize is wide enough that Claude Code does not wrap its lines.
var DefaultSize = Size{Rows: 50, Cols: 200}

// Set parses rows and columns, such as 50x200.
func (s *Size) Set(text string) error {
	rows, cols, found := strings.Cut(strings.ToLower(text), "x")
	r, rowsErr := strconv.ParseUint(rows, 10, 16)
	c, colsErr := strconv.ParseUint(cols, 10, 16)
	if !found || rowsErr != nil || colsErr != nil || r == 0 || c == 0 {
		return fmt.Errorf("it takes ROWSxCOLS, each from 1 to %d, such as 50x200", math.MaxUint16)
	}
	*s = Size{uint16(r), uint16(c)}
	return nil
}

// String returns what Set parses.
func (s *Size) String() string { return fmt.Sprintf("%dx%d", s.Rows, s.Cols) }

// Type names the value in the help.
func (s *Size) Type() string { return "ROWSxCOLS" }

// size returns the size that the command's terminal should have.
func (s *session) size() *pty.Winsize {
	if s.caller.sized != nil && !s.FixedSize {
		if ws, err := pty.GetsizeFull(s.caller.sized); err == nil && ws.Rows > 0 && ws.Cols > 0 {
			return ws
		}
	}
	return &pty.Winsize{Rows: s.Size.Rows, Cols: s.Size.Cols}
}

// reshape follows the size that the command's terminal should have.
func (s *session) reshape() {
	if err := s.setSize(); err != nil && !errors.Is(err, os.ErrClosed) {
		s.Note("follow the size of the terminal: %v: the command goes on with the one it has", err)
	}
}

func (s *session) setSize() error {
	ws := s.size()
	if err := pty.Setsize(s.ptmx, ws); err != nil {
		return err
	}
	if shape := (Size{ws.Rows, ws.Cols}); shape != s.shape {
		s.shape = shape
		if s.Resized != nil {
			s.Resized(shape)
		}
	}
	return nil
}
