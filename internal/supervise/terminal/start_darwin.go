package terminal

import (
	"golang.org/x/sys/unix"
)

const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA

// forget drops the terminal's unread input.
func forget(fd int) {
	const toRead = 1 // FREAD
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, toRead)
}
