package attach

import (
	"errors"

	"golang.org/x/sys/unix"
)

func openFolder(string) (int, error) { return -1, errors.ErrUnsupported }

func closeFolder(int) {}

// userOfPeer is who opened the other end of a unix socket (unix(4), LOCAL_PEERCRED).
func userOfPeer(fd int) (int, error) {
	peer, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return -1, err
	}
	return int(peer.Uid), nil
}
