package terminal

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes of the command: a session of its own with the terminal as its
// controlling one, and death with this process (prctl(2), PR_SET_PDEATHSIG).
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0, Pdeathsig: syscall.SIGKILL}
}

// orphansFall says that no child left means nobody left.
const orphansFall = true

// adopt has orphans of the session fall to this process, so that they can be
// found and waited for (prctl(2), PR_SET_CHILD_SUBREAPER). It names the children
// that this process has already, as one does that a shell script ended in exec:
// they are none of the session.
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

// hasChildren asks the kernel, since listing all processes takes long.
func hasChildren() bool {
	var info unix.Siginfo
	return unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == nil
}
