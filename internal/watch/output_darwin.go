package watch

import "golang.org/x/sys/unix"

// toTerminal selects the output queue for TIOCFLUSH.
const toTerminal = 0x2

// dropOutput discards output that the terminal has not taken yet.
func dropOutput(fd int) { _ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, toTerminal) }
