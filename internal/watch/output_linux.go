package watch

import "golang.org/x/sys/unix"

// dropOutput discards output that the terminal has not taken yet.
func dropOutput(fd int) { _ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCOFLUSH) }
