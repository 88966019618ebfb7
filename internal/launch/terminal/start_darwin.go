package terminal

import "syscall"

// attributes gives the command a session of its own, with the terminal as its
// controlling one. If this process dies, only the hangup ends the command.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
}

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
