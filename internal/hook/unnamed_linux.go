package hook

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// unnamedFile returns a file that only its descriptor reaches. It is in memory unless the system refuses that: a
// sandbox, or vm.memfd_noexec=2.
func unnamedFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("heartbeat-input", unix.MFD_CLOEXEC)
	if err == nil {
		return os.NewFile(uintptr(fd), "the hook's input"), nil
	}
	f, other := unlinkedFile()
	if other != nil {
		return nil, errors.Join(os.NewSyscallError("memfd_create", err), other)
	}
	return f, nil
}
