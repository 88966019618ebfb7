package host

import "golang.org/x/sys/unix"

// zombie is SZOMB of sys/proc.h.
const zombie = 5

// List returns all visible processes except zombies.
func List() (all []Entry) {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	for _, p := range list {
		if p.Proc.P_stat != zombie {
			start := p.Proc.P_starttime
			all = append(all, Entry{int(p.Proc.P_pid), int(p.Eproc.Ppid), int(p.Eproc.Pgid), start.Sec*1e6 + int64(start.Usec)})
		}
	}
	return all
}
