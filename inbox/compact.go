package inbox

import (
	"context"
	"errors"
	"fmt"
)

// Compaction says what [Inbox.Compact] gave back.
type Compaction struct {
	// To is the offset before which the queue file takes up no space.
	To int64 `json:"to_offset"`
	// Freed is how many bytes on the disk this call gave back.
	Freed int64 `json:"freed_bytes"`
	// Warnings are sentences about what was found and repaired on the way.
	Warnings []string `json:"warnings,omitempty"`
}

// Compact gives back the disk space of settled lines without moving a byte: it
// makes a hole in the queue file, so that every offset stays right and other
// programs can go on appending. The last few kilobytes before the cursor stay,
// since the file is recognised by them. If the file system has no holes, the
// error matches [ErrNoHoles] and nothing has changed.
func (b *Inbox) Compact(ctx context.Context) (c Compaction, err error) {
	t, err := b.Begin(ctx)
	if err != nil {
		return c, err
	}
	defer func() {
		c.Warnings = t.Warnings()
		err = errors.Join(err, t.Close())
	}()
	from, to, err := t.freeRange()
	if err != nil || !t.freesBlocks(from, to) {
		return Compaction{To: from}, err
	}
	before := t.file.Info().Space
	t.st.Punching, t.dirty = to, true
	// Making the hole changes the file's times, and those tell a rewritten file
	// from ours. So the intent is committed first; if a kill comes between the
	// two, the next transaction makes the hole.
	if err := t.Commit(); err != nil {
		return c, fmt.Errorf("compact %s: %w", b.path, err)
	}
	if err := t.makeHole(); err != nil {
		return c, fmt.Errorf("compact %s: %w", b.path, err)
	}
	return Compaction{To: to, Freed: max(0, before-t.file.Info().Space)}, nil // others may have appended meanwhile
}
