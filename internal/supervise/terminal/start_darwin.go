package terminal

import (
	"golang.org/x/sys/unix"
)

// orphansFall says whether orphans become children of this process, so that no child
// left means that nobody is left.
const orphansFall = false

// adopt returns the children that this process already has. Orphans become children
// of launchd.
func adopt() (strangers map[int]bool) {
	strangers = map[int]bool{}
	for _, pid := range family(0, nil) {
		strangers[pid] = true
	}
	return strangers
}

const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA

// forget drops what a terminal has to be read.
func forget(fd int) {
	const toRead = 1 // FREAD
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, toRead)
}
