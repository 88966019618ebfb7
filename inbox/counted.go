package inbox

import (
	"context"
	"errors"
	"fmt"
	"io"

	"heartbeat/internal/lines"
)

// Counted is how far [View.Count] has counted, and what.
type Counted struct {
	seq, from  int64
	generation int
	file       string
	end        int64 // of the last whole line
	whole      Backlog
}

// Count is [View.Backlog] for those who look again and again: it returns how far it came,
// too. If nothing was committed since last, which may be nil, and the queue file has at
// most grown, it reads only what was appended. A line that somebody edits in place while
// it waits is then seen with the next commit.
func (v *View) Count(ctx context.Context, last *Counted) (b Backlog, now *Counted, err error) {
	from := v.waitsFrom()
	if v.tx.file != nil {
		if from, err = v.tx.file.SkipZeros(from, v.Size()); err != nil {
			return b, nil, fmt.Errorf("count what waits in %s: %w", v.tx.box.path, err)
		}
	}
	now = &Counted{seq: v.tx.st.Seq, from: from, generation: v.tx.st.QueueGeneration, end: from}
	if v.tx.file != nil {
		now.file = v.tx.file.Identity()
	}
	if last != nil && v.Replaced() == "" && last.end <= v.Size() && last.sameAs(now) {
		now.end, now.whole = last.end, last.whole
	}
	torn, err := v.countLines(ctx, now)
	if err != nil {
		return b, nil, fmt.Errorf("count what waits in %s: %w", v.tx.box.path, err)
	}
	b = Backlog{Entries: now.whole.Entries + torn.Entries, Bytes: now.whole.Bytes + torn.Bytes, Torn: torn.Torn}
	if d := v.tx.redeliver; d != nil {
		b.Entries++
		b.Bytes += d.EndOffset - d.StartOffset
	}
	return b, now, nil
}

// sameAs reports whether both counts begin at the same line of the same file, with the
// same entries canceled.
func (c *Counted) sameAs(other *Counted) bool {
	return c.seq == other.seq && c.from == other.from && c.generation == other.generation && c.file == other.file
}

// countLines adds the whole lines from c.end on, and returns a last one that is not.
func (v *View) countLines(ctx context.Context, c *Counted) (torn Backlog, err error) {
	unread := v.Size() - c.end
	if unread <= 0 {
		return torn, nil
	}
	var failed error
	err = lines.Each(io.NewSectionReader(v.tx.file, c.end, unread), c.end, func(start, end int64, l []byte, whole bool) bool {
		to := &c.whole
		if !whole {
			to = &torn
		}
		to.Bytes += end - c.end
		if v.tx.skips(start) {
			to.Bytes -= end - start
		} else if len(l) > MaxLine || !blank(l) {
			to.Entries++
			to.Torn = !whole
		}
		if whole {
			c.end = end
		}
		failed = context.Cause(ctx)
		return failed == nil
	})
	return torn, errors.Join(err, failed)
}
