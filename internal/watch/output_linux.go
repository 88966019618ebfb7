package watch

import "golang.org/x/sys/unix"

// dropOutput forgets what a terminal was given and has not taken.
func dropOutput(fd int) { _ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCOFLUSH) }
