package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/lines"
)

// adopt takes over what an older release has kept of a session's messages: in the
// guild's database, and in the session's spool those that are not there. With move, the
// spool goes. It may be called again after any error or kill.
func adopt(ctx context.Context, o Options, move bool) error {
	known, err := o.DB.Knows(ctx, o.SessionID)
	if err != nil {
		return err
	}
	spooled := false
	if o.Spool != "" {
		if spooled, err = disk.Exists(o.Spool); err != nil {
			return err
		}
	}
	if !known {
		err = o.DB.Adopt(ctx, o.SessionID, o.Guild)
	}
	if err != nil || !spooled {
		return err
	}
	if err := adoptSpool(ctx, o); err != nil || !move {
		return err
	}
	return disk.Remove(o.Spool)
}

// adoptSpool copies the messages of a spool: its first line says whose it is, and each
// other one is a message. What a kill has torn is left out.
func adoptSpool(ctx context.Context, o Options) error {
	f, err := disk.OpenRead(o.Spool)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	var batch []stream.Stored
	size := 0
	flush := func() (err error) {
		if len(batch) > 0 {
			err = o.DB.Append(ctx, o.SessionID, batch)
		}
		batch, size = nil, 0
		return err
	}
	var failed error
	err = lines.EachHead(stream.MaxLine+4<<10, false, io.NewSectionReader(f, 0, f.Info().Size), 0, func(start, _ int64, line []byte, whole bool) bool {
		if start == 0 {
			var head struct {
				Session string `json:"session"`
			}
			if err := json.Unmarshal(line, &head); err != nil || head.Session != o.SessionID {
				failed = fmt.Errorf("%s: it belongs to session %q: %w", o.Spool, head.Session, disk.ErrForeign)
			}
			return failed == nil
		}
		var m stream.Stored
		if !whole || json.Unmarshal(line, &m) != nil || m.N < 1 || m.At.IsZero() || len(m.Content) < 2 {
			return true
		}
		batch, size = append(batch, m), size+len(m.Content)
		if size >= maxBatchBytes || len(batch) == maxBatch {
			failed = flush()
		}
		return failed == nil
	})
	return errors.Join(err, failed, flush())
}
