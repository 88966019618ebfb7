package client

import (
	"cmp"
	"context"
	"os"

	"github.com/creack/pty"
)

// Keys as a terminal sends them.
const (
	enter  = "\r"
	escape = "\x1b"
)

// inputLine is how the client marks the line that a person types in.
const inputLine = "❯"

// Session is a client in interactive mode, in a terminal.
type Session struct {
	*Process
	tty    *os.File
	screen *output
}

// Interactive starts the client in a terminal. The test ends when that fails.
// Use WaitReady before typing.
func (w *Workspace) Interactive(o Options) *Session {
	w.t.Helper()
	cmd := w.command(o)
	tty, err := pty.StartWithSize(cmd, o.size())
	must(w.t, err)
	s := &Session{tty: tty, screen: newOutput()}
	go s.screen.collect(tty)
	w.t.Cleanup(func() { _ = tty.Close() }) // runs after the Kill that watch registers
	s.Process = w.watch(cmd)
	return s
}

func (o Options) size() *pty.Winsize {
	return &pty.Winsize{Rows: cmp.Or(o.Rows, 40), Cols: cmp.Or(o.Cols, 120)}
}

// Wait blocks until the client has ended and returns its exit code (see
// ExitCode). The error is the context's.
func (s *Session) Wait(ctx context.Context) (int, error) {
	if err := s.wait(ctx); err != nil {
		return 0, err
	}
	return s.ExitCode()
}

// Screen returns every byte the client has written to the terminal so far,
// control sequences included.
func (s *Session) Screen() []byte { return s.screen.bytes() }

// WaitScreen blocks until the text has been on the screen at or after the byte
// offset from, and returns the offset from which to look for the next one.
// Spaces and line ends do not count in the comparison, because the client draws
// them as cursor moves. The error is the context's, with the screen's last
// words.
func (s *Session) WaitScreen(ctx context.Context, from int, text string) (int, error) {
	return s.screen.wait(ctx, from, text)
}

// WaitReady blocks until the client shows its input line and so takes
// keystrokes. The error is the context's, or says that the client ended.
func (s *Session) WaitReady(ctx context.Context) error {
	_, err := s.WaitScreen(ctx, 0, inputLine)
	return err
}

// Type sends text as keystrokes, without Enter.
func (s *Session) Type(text string) error { return s.send(text) }

// Enter presses Enter.
func (s *Session) Enter() error { return s.send(enter) }

// Esc presses Escape, which interrupts a turn that is being answered.
func (s *Session) Esc() error { return s.send(escape) }

// Submit types one line and presses Enter once the line is on the screen: an
// Enter that arrives together with the text would be taken as part of a paste.
func (s *Session) Submit(ctx context.Context, line string) error {
	from := len(s.Screen())
	if err := s.Type(line); err != nil {
		return err
	}
	if _, err := s.WaitScreen(ctx, from, line); err != nil {
		return err
	}
	return s.Enter()
}

// send writes keystrokes to the terminal.
func (s *Session) send(keys string) error {
	_, err := s.tty.WriteString(keys)
	return err
}
