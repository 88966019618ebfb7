// Package socket makes unix sockets that only their owner can open. Each lies in a private folder
// and is reachable however long the folder's path is.
package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// ErrNobody says that nobody listens on the socket.
var ErrNobody = errors.New("nobody listens there")

// Listen makes the socket in the folder, for its owner alone, and replaces one that a dead process
// left. The caller must keep others off the folder.
func Listen(folder, name string) (of *net.UnixListener, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open the socket %s: %w", filepath.Join(folder, name), err)
		}
	}()
	if err := removeOld(filepath.Join(folder, name)); err != nil {
		return nil, err
	}
	path, release, err := address(folder, name)
	if err != nil {
		return nil, err
	}
	defer release()
	// Set the mode before the bind, so that others can never open the socket. Not every system
	// applies it, so the name gets the mode too.
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
	}}
	l, err := private.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // its owner removes it: by then the path may be another folder's
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l.(*net.UnixListener), nil
}

func removeOld(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return errors.New("there is something else of that name: move it away")
	}
	return disk.Remove(path)
}

// Dial connects to the listener in the folder. The error matches [ErrNobody] if there is none.
// While the kernel's queue of connections is full, it tries again until ctx ends.
func Dial(ctx context.Context, folder, name string) (*net.UnixConn, error) {
	path, release, err := address(folder, name)
	if err != nil {
		return nil, err
	}
	defer release()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		switch {
		case err == nil:
			return conn.(*net.UnixConn), nil
		case errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED):
			return nil, fmt.Errorf("%w: %s: %w", ErrNobody, filepath.Join(folder, name), err)
		case !errors.Is(err, syscall.EAGAIN):
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// maxAddress is the longest socket path, in bytes, that fits on each system with its zero byte:
// sun_path is 108 bytes on Linux and 104 elsewhere.
const maxAddress = 103

// address returns a path to bind or dial the socket in the folder, however long the folder's own
// path is. Call release after that.
func address(folder, name string) (path string, release func(), err error) {
	path = filepath.Join(folder, name)
	if len(path) <= maxAddress {
		return path, func() {}, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, fmt.Errorf("the path %s has %d bytes, and that of a socket may have %d here: use a folder with a shorter path", path, len(path), maxAddress)
	}
	dir, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: folder, Err: err}
	}
	return "/proc/self/fd/" + strconv.Itoa(dir) + "/" + name, func() { _ = unix.Close(dir) }, nil
}

// Peer is the process that opened the other end of a connection, by the kernel's word.
type Peer struct {
	UID int
	PID int // 0 if it is not visible from here
}

// PeerOf returns the process that opened the other end.
func PeerOf(conn *net.UnixConn) (p Peer, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return p, err
	}
	if e := raw.Control(func(fd uintptr) { p, err = peerOf(int(fd)) }); e != nil {
		err = e
	}
	if err != nil {
		return p, fmt.Errorf("the process at the other end is not known: %w", err)
	}
	return p, nil
}

// CheckUser refuses users other than this process's own and root. The socket's mode refuses them
// too, unless somebody has opened up the socket or the folder.
func (p Peer) CheckUser() error {
	if p.UID != 0 && p.UID != os.Geteuid() {
		return fmt.Errorf("user %d may not reach this session: it is that of user %d", p.UID, os.Geteuid())
	}
	return nil
}
