package terminal

import (
	"golang.org/x/sys/unix"
)

const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA

// forget drops what a terminal has to be read.
func forget(fd int) {
	const toRead = 1 // FREAD
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, toRead)
}
