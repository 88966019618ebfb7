package hook

import (
	"os"

	"golang.org/x/sys/unix"
)

// unnamedFile returns a file in memory, since the folder for temporary files may be full or missing, unless the
// system refuses that: a sandbox, or vm.memfd_noexec=2.
func unnamedFile() (*os.File, error) {
	if fd, err := unix.MemfdCreate("heartbeat-input", unix.MFD_CLOEXEC); err == nil {
		return os.NewFile(uintptr(fd), "the hook's input"), nil
	}
	return unlinkedFile()
}
