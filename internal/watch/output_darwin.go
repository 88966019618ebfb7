package watch

import "golang.org/x/sys/unix"

// toTerminal is what the terminal is given, as TIOCFLUSH names it.
const toTerminal = 0x2

// dropOutput forgets what a terminal was given and has not taken.
func dropOutput(fd int) { _ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, toTerminal) }
