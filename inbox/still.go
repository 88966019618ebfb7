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

// stillPoll is how often a file that should not change is checked.
const stillPoll = 20 * time.Millisecond

// AwaitStill returns once the queue file has not changed for settle; with the
// mark, [Tx.Next] accepts a last line that has no newline. It returns earlier if
// the newline arrives. It does not hold the lock, and trusts only the clock that
// never goes back.
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

// look is the state of the queue file, and whether its last line is whole.
func (b *Inbox) look() (mark Mark, whole bool, err error) {
	f, err := disk.OpenForeign(b.path, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return Mark{}, true, nil // it is gone: there is nothing to wait for
	}
	if err != nil {
		return Mark{}, false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	mark = Mark{Size: f.Info().Size, Mtime: f.Info().Mtime}
	whole, err = lines.Ends(f, mark.Size)
	return mark, whole, err
}
