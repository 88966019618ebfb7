package terminal

import (
	"golang.org/x/sys/unix"
)

// orphansFall says whether orphans become children of this process, so that no child
// left means that nobody is left.
const orphansFall = true

// adopt makes the session's orphans children of this process, so that they can be
// found and reaped (prctl(2), PR_SET_CHILD_SUBREAPER). It returns the children that
// this process already has, as after a shell script's exec: they do not belong to
// the session.
func adopt() (strangers map[int]bool) {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // since Linux 3.4: cannot fail
	if !hasChildren() {
		return nil
	}
	strangers = map[int]bool{}
	for _, pid := range family(0, nil) {
		strangers[pid] = true
	}
	return strangers
}

// hasChildren asks the kernel, since listing all processes is slow.
func hasChildren() bool {
	var info unix.Siginfo
	return unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == nil
}

const getTermios, setTermios = unix.TCGETS, unix.TCSETS

// forget drops what a terminal has to be read.
func forget(fd int) { _ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
