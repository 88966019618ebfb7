package inbox

import (
	"context"
	"errors"
)

// Promote moves the scheduled entries that have come due to the end of the inbox.
// [Inbox.Begin] does the same; this is for callers that only look.
func (b *Inbox) Promote(ctx context.Context) error {
	s, err := b.Schedule()
	if err != nil || s.Next.IsZero() || s.Next.After(b.opts.Now()) {
		return err
	}
	t, err := b.Begin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(t.notMoved, t.Close())
}
