package inbox

import (
	"context"
	"errors"
	"fmt"
)

// Compaction says what [Inbox.Compact] gave back.
type Compaction struct {
	// To is the offset before which the queue file takes no space.
	To int64 `json:"to_offset"`
	// Freed is how many bytes on the disk that gave back just now.
	Freed int64 `json:"freed_bytes"`
	// Warnings are sentences about what was found and mended besides.
	Warnings []string `json:"warnings,omitempty"`
}

// Compact gives back the disk space of what was settled, without moving a byte:
// it makes a hole in the queue file, so that every offset and every program that
// appends stays right. Some kilobytes before the cursor stay, by which the file
// is recognised. Where the file system has no holes the error matches
// [ErrNoHoles], and nothing has changed.
func (b *Inbox) Compact(ctx context.Context) (c Compaction, err error) {
	t, err := b.Begin(ctx)
	if err != nil {
		return c, err
	}
	defer func() {
		c.Warnings = t.Warnings()
		err = errors.Join(err, t.Close())
	}()
	from, to, err := t.hole()
	if err != nil || !t.freesBlocks(from, to) {
		return Compaction{To: from}, err
	}
	before := t.file.Info().Space
	t.st.Punching, t.dirty = to, true
	// Making the hole changes the file's times, by which a file that was written
	// anew is known: so the intent comes first, and a kill between the two is
	// finished by whoever comes next.
	if err := t.Commit(); err != nil {
		return c, fmt.Errorf("compact %s: %w", b.path, err)
	}
	if err := t.makeHole(); err != nil {
		return c, fmt.Errorf("compact %s: %w", b.path, err)
	}
	return Compaction{To: to, Freed: max(0, before-t.file.Info().Space)}, nil // others may have appended
}
