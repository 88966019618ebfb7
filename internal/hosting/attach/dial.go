package attach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"time"
)

// dial connects to the host that serves the folder. The error matches ErrNotRunning if
// there is none.
func dial(ctx context.Context, folder string) (*net.UnixConn, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		conn, err := dialOnce(ctx, folder)
		switch {
		case err == nil:
			return conn, nil
		case errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED):
			return nil, fmt.Errorf("%w: %s: %w", ErrNotRunning, filepath.Join(folder, SocketName), err)
		case !errors.Is(err, syscall.EAGAIN):
			return nil, fmt.Errorf("reach the session's host: %w", err)
		}
		// So many connect at once that the kernel keeps no more of them waiting.
		if err := sleep(ctx, pause); err != nil {
			return nil, fmt.Errorf("reach the session's host: %w: it takes no connections", err)
		}
	}
}

func dialOnce(ctx context.Context, folder string) (*net.UnixConn, error) {
	path, release, err := address(folder)
	if err != nil {
		return nil, err
	}
	defer release()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
