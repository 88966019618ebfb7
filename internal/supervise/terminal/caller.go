package terminal

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"heartbeat/internal/machine/guardian"
)

// caller is the terminal that this process was started from, if there is one.
type caller struct {
	typing *os.File // stdin, if it is a terminal whose keys go to the command
	sized  *os.File // the first of stdin, stdout and stderr that has a size to follow
	state  *term.State
	found  *guardian.Terminal // as it was found, for the guardian
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

// inForeground reports whether this process may read the terminal: the system stops
// a background process that does. Any process may read a terminal that is not its
// controlling one.
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

// restore sets the terminal back to its first state, and drops what was typed and not
// read. One that another program has taken over meanwhile is left alone.
func (c *caller) restore() {
	if c.state == nil || !inForeground(c.typing) {
		return
	}
	_ = term.Restore(int(c.typing.Fd()), c.state) // fails if it is gone
	forget(int(c.typing.Fd()))
}

// Forget drops what was typed at a terminal and not read: nobody can tell for whom.
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
		_ = unix.IoctlSetTermios(int(tty.Fd()), setTermios, settings) // the default settings would do too
	}
}
