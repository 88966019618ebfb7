package host

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Name is what a process calls itself, at most 15 bytes of it (proc(5), comm), "" if it has
// ended.
func Name(pid int) string {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/comm", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	comm := make([]byte, 64)
	n, err := unix.Read(fd, comm)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(comm[:n]), "\n")
}

// WorkingDir is the directory that a process works in, "" if that cannot be known.
func WorkingDir(pid int) string {
	dir, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd") // "" with an error
	return dir
}
