package terminal

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/creack/pty"
)

// Size is the size of a terminal, and the value of a flag.
type Size struct{ Rows, Cols uint16 }

// DefaultSize is wide enough that Claude Code does not wrap its lines.
var DefaultSize = Size{Rows: 50, Cols: 200}

// Set takes rows and columns, such as 50x200.
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

// String returns what Set takes.
func (s *Size) String() string { return fmt.Sprintf("%dx%d", s.Rows, s.Cols) }

// Type is what the help calls it.
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

// resize follows the caller's terminal. The kernel signals the command.
func (s *session) resize() {
	if s.caller.sized != nil && !s.FixedSize {
		s.reshape()
	}
}

func (s *session) reshape() {
	if err := s.setSize(); err != nil && !errors.Is(err, errClosed) {
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
