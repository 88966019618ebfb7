package socket

import "golang.org/x/sys/unix"

// peerOf asks unix(4), LOCAL_PEERCRED and LOCAL_PEERPID.
func peerOf(fd int) (Peer, error) {
	peer, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	return Peer{UID: int(peer.Uid), PID: pid}, err
}
