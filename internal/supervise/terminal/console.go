package terminal

import (
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"heartbeat/internal/supervise/terminal/modes"
)

// Console is the caller's terminal, where sessions are shown: it follows how they set it,
// has it at rest again when one is over, and keeps what this process has to say out of a
// screen that a session draws.
type Console struct {
	to *os.File

	mu     sync.Mutex
	usual  *sync.Cond // is told when no session may draw on the other screen any more
	modes  modes.Follower
	record func(undo []byte) // has the guardian know, nil for none
}

// NewConsole is the terminal that f is, nil if it is none.
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
		c.record(append(before.Undo(), now.Undo()...)) // a kill may come before or after what is printed now
		defer func() { c.record(now.Undo()) }()
	}
	n, err := c.to.Write(b)
	c.usual.Broadcast()
	return n, err
}

// Beside returns a writer to a terminal, or whatever else may be the same one: what is said
// there waits while a session draws on a screen that will go.
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

// follow has the guardian know how to undo what the sessions set.
func (c *Console) follow(record func(undo []byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record = record
	record(c.modes.Undo())
}

// rest has the terminal at rest again, after a session.
func (c *Console) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	how := append(c.modes.End(), c.modes.Undo()...)
	if c.modes.Draws() && !c.modes.Alternate() {
		how = append(how, "\r\n\x1b[J"...) // below what was drawn, or in place of its last rows
	}
	if len(how) > 0 {
		_, _ = c.to.Write(how) // fails if it is gone
	}
	if c.record != nil {
		c.record(nil)
	}
	c.modes, c.record = modes.Follower{}, nil
	c.usual.Broadcast()
}
