package socket

import "golang.org/x/sys/unix"

// peerOf asks unix(7), SO_PEERCRED.
func peerOf(fd int) (Peer, error) {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	return Peer{UID: int(peer.Uid), PID: int(peer.Pid)}, nil
}
