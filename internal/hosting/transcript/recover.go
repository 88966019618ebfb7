package transcript

import (
	"context"
	"errors"
	"io/fs"
)

// Recover stores what a dead host left in a session's spool, and does nothing where
// there is nothing. It may be called again after any error or kill.
func Recover(ctx context.Context, o Options) error {
	messages := 0
	sp, err := openSpool(o.Spool, o.SessionID, false, func(Stored, int64, int64) { messages++ })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	done := sp.head.Closed && messages == 0
	if err := sp.close(); err != nil || done {
		return err
	}
	return Open(o).Close(ctx)
}
