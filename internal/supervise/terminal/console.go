package terminal

import (
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Console is the caller's terminal, where sessions are shown. It follows the modes that they set,
// resets them after each session, and keeps this process's messages out of a session's screen.
type Console struct {
	to *os.File

	mu     sync.Mutex
	usual  *sync.Cond // signalled when no session may draw on the alternate screen any more
	modes  Follower
	record func(undo []byte) // tells the guardian, nil for none
}

// NewConsole returns the console on f, nil if f is no terminal.
func NewConsole(f *os.File) *Console {
	if f == nil || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	c := &Console{to: f}
	c.usual = sync.NewCond(&c.mu)
	return c
}

// Write shows what a session prints.
func (c *Console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.modes.Modes
	c.modes.Follow(b)
	if now := c.modes.Modes; now != before && c.record != nil {
		c.record(append(before.Undo(), now.Undo()...)) // a kill may come before or after the write
		defer func() { c.record(now.Undo()) }()
	}
	n, err := c.to.Write(b)
	c.usual.Broadcast()
	return n, err
}

// Beside returns a writer to a terminal, or to anything that may be the same terminal. It waits
// while a session draws on the alternate screen, which will disappear.
func (c *Console) Beside(to io.Writer) io.Writer {
	if c == nil {
		return to
	}
	return beside{c, to}
}

type beside struct {
	console *Console
	to      io.Writer
}

func (b beside) Write(text []byte) (int, error) {
	c := b.console
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.modes.Alternate() {
		c.usual.Wait()
	}
	return b.to.Write(text)
}

// follow tells the guardian, at each change, how to undo what the sessions set.
func (c *Console) follow(record func(undo []byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record = record
	record(c.modes.Undo())
}

// rest resets the terminal after a session.
func (c *Console) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	how := append(c.modes.End(), c.modes.Undo()...)
	if c.modes.Draws() && !c.modes.Alternate() {
		how = append(how, "\r\n\x1b[J"...) // below what was drawn, or over its last rows
	}
	if len(how) > 0 {
		_, _ = c.to.Write(how) // fails if it is gone
	}
	if c.record != nil {
		c.record(nil)
	}
	c.modes, c.record = Follower{}, nil
	c.usual.Broadcast()
}
