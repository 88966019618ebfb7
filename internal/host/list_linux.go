package host

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// List returns all visible processes except zombies (proc(5)). It is empty if /proc
// is not mounted.
func List() (all []Entry) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if e, ok := entry(pid); ok {
				all = append(all, e)
			}
		}
	}
	return all
}

// entry reads a process from /proc. ok is false if it has ended.
func entry(pid int) (e Entry, ok bool) {
	// Plain system calls: os.ReadFile would start the runtime's poller, and the hook
	// passes here at each delivery.
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return e, false
	}
	defer unix.Close(fd)
	stat := make([]byte, 4<<10)
	n, err := unix.Read(fd, stat)
	if err != nil {
		return e, false
	}
	stat = stat[:n]
	// 42 (a name) S 1 42 42 ...: the name may contain anything, also parentheses
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const startTime = 22 - 3 // the third field is the first here
	if len(f) <= startTime || f[0][0] == 'Z' || f[0][0] == 'X' {
		return e, false
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(string(f[i]), 10, 64) // the kernel prints numbers
		return n
	}
	return Entry{pid, int(number(1)), int(number(2)), number(startTime)}, true
}
