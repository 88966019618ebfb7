package terminal

import "syscall"

// attributes of the command: a session of its own with the terminal as its
// controlling one. There is no death with this process but by the hangup.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
}

// orphansFall says that no child left means nobody left.
const orphansFall = false

// adopt names the children that this process has already. Orphans fall to
// launchd here.
func adopt() (strangers map[int]bool) {
	strangers = map[int]bool{}
	for _, pid := range family(0, nil) {
		strangers[pid] = true
	}
	return strangers
}
