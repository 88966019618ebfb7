package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// Listen makes the socket in the session's folder, for its owner alone. It takes the
// place of one that a dead host left. If a live host serves it, the error matches
// ErrRunning. Of several hosts only the one that holds the folder's lock may call it.
func Listen(folder string) (*net.UnixListener, error) {
	l, err := listen(folder)
	if errors.Is(err, syscall.EADDRINUSE) {
		if err = removeStale(folder); err == nil {
			l, err = listen(folder)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the session's socket %s: %w", filepath.Join(folder, SocketName), err)
	}
	return l, nil
}

func listen(folder string) (*net.UnixListener, error) {
	path, release, err := address(folder)
	if err != nil {
		return nil, err
	}
	defer release()
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		// The mode of the socket becomes that of its name, so that there is no moment
		// in which others can open it. Not every system knows that: see below.
		return c.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	socket := l.(*net.UnixListener)
	socket.SetUnlinkOnClose(false) // by then the path may be another folder's: see Server.Close
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return socket, nil
}

// removeStale removes the socket of a dead host: one that nobody listens on.
func removeStale(folder string) error {
	path := filepath.Join(folder, SocketName)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode()&fs.ModeSocket == 0 {
		err = errors.New("there is something else of that name: move it away")
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := dial(ctx, folder)
	switch {
	case errors.Is(err, ErrNotRunning):
		return disk.Remove(path)
	case err == nil:
		_ = conn.Close()
	}
	return ErrRunning
}
