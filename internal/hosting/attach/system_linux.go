package attach

import "golang.org/x/sys/unix"

func openFolder(path string) (int, error) {
	return unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

func closeFolder(fd int) { _ = unix.Close(fd) } // nothing was written through it

// userOfPeer is who opened the other end of a unix socket (unix(7), SO_PEERCRED).
func userOfPeer(fd int) (int, error) {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return -1, err
	}
	return int(peer.Uid), nil
}
