package inbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
)

// MoveForeignAside moves away state files that were not written here, as [Inbox.Begin]
// does. It is for callers that only look, and returns warnings for a person.
func (b *Inbox) MoveForeignAside(ctx context.Context) (warnings []string, err error) {
	v, err := b.View()
	if err != nil {
		return nil, nil // the caller's own look reports it
	}
	known := v.tx.writtenHere()
	if err := v.Close(); err != nil || known {
		return nil, err
	}
	if there, err := b.hasOwn(); err != nil || !there {
		return nil, err
	}
	t, err := b.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("the state in %s was not written here, and cannot be moved away: %w", b.dir, err)
	}
	return t.Warnings(), t.Close()
}

// hasOwn reports whether there is a file that [Tx.moveForeignAside] would move away.
func (b *Inbox) hasOwn() (bool, error) {
	for _, kind := range journal.Ours() {
		info, err := disk.StatName(b.fileOf(kind))
		if err == nil && info.Size > 0 {
			return true, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return false, nil
}
