package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// stillPoll is how often a file that ought to stand still is looked at.
const stillPoll = 20 * time.Millisecond

// AwaitStill returns once the queue file has stood still for settle: the mark
// lets [Tx.Next] take a last line that has no newline. It returns earlier when
// the newline arrives. The lock is not held meanwhile, and no clock of the
// machine is trusted but the one that only goes forward.
func (b *Inbox) AwaitStill(ctx context.Context, settle time.Duration) (Mark, error) {
	mark, _, err := b.look()
	since := time.Now()
	for err == nil {
		rest := settle - time.Since(since)
		if rest <= 0 {
			return mark, nil
		}
		select {
		case <-ctx.Done():
			return Mark{}, context.Cause(ctx)
		case <-time.After(min(rest, stillPoll)):
		}
		var now Mark
		var whole bool
		if now, whole, err = b.look(); err != nil {
			break
		}
		if whole {
			return now, nil
		}
		if now != mark {
			mark, since = now, time.Now()
		}
	}
	return Mark{}, fmt.Errorf("wait for the inbox to stand still: %w", err)
}

// look stats the queue file, and says whether its last line is whole.
func (b *Inbox) look() (mark Mark, whole bool, err error) {
	f, err := disk.OpenForeign(b.path, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return Mark{}, true, nil // it went away: there is nothing to wait for
	}
	if err != nil {
		return Mark{}, false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	mark = Mark{Size: f.Info().Size, Mtime: f.Info().Mtime}
	whole, err = lines.Ends(f, mark.Size)
	return mark, whole, err
}
