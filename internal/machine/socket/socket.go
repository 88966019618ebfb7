// Package socket is unix sockets that only their owner can open: each lies in a private
// folder, and is reached however long the folder's path is.
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

// ErrNobody says that nobody listens there.
var ErrNobody = errors.New("nobody listens there")

// Listen makes the socket in the folder, for its owner alone, and in the place of one that
// a dead process left. Only who keeps others off the folder may call it.
func Listen(folder, name string) (*net.UnixListener, error) {
	err := removeOld(filepath.Join(folder, name))
	var l *net.UnixListener
	if err == nil {
		l, err = listen(folder, name)
	}
	if err != nil {
		return nil, fmt.Errorf("open the session's socket %s: %w", filepath.Join(folder, name), err)
	}
	return l, nil
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

func listen(folder, name string) (*net.UnixListener, error) {
	path, release, err := address(folder, name)
	if err != nil {
		return nil, err
	}
	defer release()
	// The socket's mode becomes that of its name, so that there is no moment in which others can
	// open it. Not every system knows that: its name is given the mode, too.
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

// Dial connects to who listens in the folder. The error matches [ErrNobody] if nobody
// does. If so many connect at once that the kernel keeps no more of them waiting, it tries
// again until ctx ends.
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
		case !errors.Is(err, syscall.EAGAIN) || Sleep(ctx, pause) != nil:
			return nil, err
		}
	}
}

// Sleep waits, but not longer than ctx lasts.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxAddress is the longest path that a unix socket's address holds on each system,
// with a zero byte behind it: sun_path is 108 bytes on Linux and 104 elsewhere.
const maxAddress = 103

// address returns a path by which the socket in the folder can be bound and dialed
// however long the folder's own path is. release is to be called after that.
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

// Peer is the process that opened the other end of a connection, as the kernel says.
type Peer struct {
	UID int
	PID int // 0 if it is not visible from here
}

// PeerOf is who opened the other end.
func PeerOf(conn *net.UnixConn) (p Peer, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return p, err
	}
	if e := raw.Control(func(fd uintptr) { p, err = peerOf(int(fd)) }); e != nil {
		err = e
	}
	if err != nil {
		return p, fmt.Errorf("who is at the other end cannot be found out: %w", err)
	}
	return p, nil
}

// CheckUser refuses other users than this process's own and root. A socket's mode refuses
// them too, unless it or the folder was opened up.
func (p Peer) CheckUser() error {
	if p.UID != 0 && p.UID != os.Geteuid() {
		return fmt.Errorf("user %d may not reach this session: it is that of user %d", p.UID, os.Geteuid())
	}
	return nil
}
