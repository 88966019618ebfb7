package transcript

import (
	"context"

	"heartbeat/internal/disk"
)

// Recover stores what a dead host left in a session's spool, and does nothing where
// there is no spool. It may be called again after any error or kill.
func Recover(ctx context.Context, o Options) error {
	there, err := disk.Exists(o.Spool)
	if err != nil || !there {
		return err
	}
	return Open(o).Close(ctx)
}
