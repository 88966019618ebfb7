package sharing

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"heartbeat/internal/disk"
	"heartbeat/internal/machine/socket"
)

// Dial connects to the launcher with this process number, -1 if that is not known, that
// listens at the path. The path was read from a file that more than the launcher may write:
// only the process that holds the inbox is believed, in a folder of its user's own.
func Dial(ctx context.Context, path string, launcher int) (*net.UnixConn, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("the launcher's socket %s has no absolute path", path)
	}
	folder := filepath.Dir(path)
	if launcher > 0 { // a service has a /tmp of its own
		its := filepath.Join("/proc", strconv.Itoa(launcher), "root", folder)
		if _, err := disk.StatDir(its); err == nil {
			folder = its
		}
	}
	conn, err := dialIn(ctx, folder, filepath.Base(path), launcher)
	if err != nil {
		return nil, fmt.Errorf("reach the launcher: %w", err)
	}
	return conn, nil
}

func dialIn(ctx context.Context, folder, name string, launcher int) (*net.UnixConn, error) {
	info, err := disk.StatDir(folder)
	if err != nil {
		return nil, err
	}
	if info.Mode&0o077 != 0 {
		return nil, fmt.Errorf("others may reach into %s (mode %04o), which no launcher makes so", folder, info.Mode)
	}
	conn, err := socket.Dial(ctx, folder, name)
	if err != nil {
		return nil, err
	}
	peer, err := socket.PeerOf(conn)
	switch {
	case err != nil:
	case launcher > 0 && peer.PID != launcher:
		err = fmt.Errorf("process %d listens at %s, and process %d has the inbox: it is not believed", peer.PID, filepath.Join(folder, name), launcher)
	case peer.UID != int(info.UID):
		err = fmt.Errorf("user %d listens at %s, in a folder of user %d: it is not believed", peer.UID, filepath.Join(folder, name), info.UID)
	case os.Geteuid() != 0 && peer.UID != os.Geteuid():
		err = fmt.Errorf("the launcher is user %d, and this is user %d: attach as that user", peer.UID, os.Geteuid())
	default:
		return conn, nil
	}
	return nil, errors.Join(err, conn.Close())
}
