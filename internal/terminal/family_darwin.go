package terminal

import "golang.org/x/sys/unix"

// zombie is SZOMB of sys/proc.h.
const zombie = 5

// processes lists those that are no zombies.
func processes() (all []process) {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	for _, p := range list {
		if p.Proc.P_stat != zombie {
			all = append(all, process{int(p.Proc.P_pid), int(p.Eproc.Ppid), int(p.Eproc.Pgid)})
		}
	}
	return all
}
