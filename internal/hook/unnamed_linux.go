package hook

import (
	"os"

	"golang.org/x/sys/unix"
)

// unnamedFile is a file that only its descriptor reaches.
func unnamedFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("heartbeat-input", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "the hook's input"), nil
}
