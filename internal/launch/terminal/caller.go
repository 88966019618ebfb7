package terminal

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"heartbeat/internal/host/guardian"
)

// caller is the terminal that this process was started from, as far as there is
// one.
type caller struct {
	typing *os.File // stdin, where it is a terminal that one types at
	sized  *os.File // whichever of stdin, stdout and stderr has a size to follow
	state  *term.State
	found  *guardian.Terminal // the same for who guards it
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

// inForeground reports whether this process may read the terminal: the system
// stops one in the background that does. A terminal that is not the controlling
// one can be read by all.
func inForeground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// raw hands every key over as it is typed.
func (c *caller) raw() error {
	if c.typing == nil {
		return nil
	}
	if c.found == nil {
		c.found, _ = guardian.TerminalOf(c.typing) // without, nobody restores it behind a SIGKILL
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

// restore leaves the terminal as it was found.
func (c *caller) restore() {
	if c.state != nil {
		_ = term.Restore(int(c.typing.Fd()), c.state) // it may be gone
	}
}

// lend has the command's terminal begin with the settings of the caller's.
func (c *caller) lend(tty *os.File) {
	if c.typing == nil {
		return
	}
	if settings, err := unix.IoctlGetTermios(int(c.typing.Fd()), getTermios); err == nil {
		_ = unix.IoctlSetTermios(int(tty.Fd()), setTermios, settings) // the usual ones do as well
	}
}
