package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"heartbeat/internal/lines"
)

// Waits calls f for the waiting entries, in order of delivery, until f returns false. It skips lines for which may
// returns false, without decoding them, unless they are too long; a nil may skips none. The line is valid until may
// returns.
func (v *View) Waits(may func(line []byte) bool, f func(Waiting) bool) error {
	if d := v.tx.redeliver; d != nil && (may == nil || may(d.exact())) && !f(v.givenBack(d)) {
		return nil
	}
	from, err := v.waitsStart()
	if err == nil {
		err = v.eachWaiting(from, v.Size(), may, v.uncanceled(f))
	}
	return inReading(err)
}

// Last calls f for the last n waiting entries, in order of delivery. It decodes no others.
func (v *View) Last(n int, f func(Waiting)) error {
	from, err := v.waitsStart()
	to := max(from, v.Size())
	var starts []int64 // of the last n lines
	if err == nil && v.tx.file != nil {
		err = lines.Each(io.NewSectionReader(v.tx.file, from, to-from), from, func(start, _ int64, l []byte, _ bool) bool {
			if !v.tx.skips(start) && (len(l) > MaxLine || !blank(l)) {
				starts = append(starts, start)
				starts = starts[max(0, len(starts)-max(0, n)):]
			}
			return true
		})
	}
	if d := v.tx.redeliver; d != nil && len(starts) < n && err == nil {
		f(v.givenBack(d))
	}
	if len(starts) > 0 && err == nil {
		err = v.eachWaiting(starts[0], to, nil, v.uncanceled(func(w Waiting) bool { f(w); return true }))
	}
	return inReading(err)
}

// uncanceled leaves out entries that will be passed without delivery.
func (v *View) uncanceled(f func(Waiting) bool) func(Waiting) bool {
	return func(w Waiting) bool {
		return v.tx.skips(w.Start) || f(w)
	}
}

// waitsStart returns where the first line starts that was never delivered, or the end of a hole there.
func (v *View) waitsStart() (int64, error) {
	from := v.tx.settledEnd()
	if v.tx.file == nil {
		return from, nil
	}
	return v.tx.file.SkipZeros(from, v.Size())
}

func (v *View) givenBack(d *Delivery) Waiting {
	w := Waiting{Entry: d.Entry()}
	if w.expired(v.tx.box.opts.Now()) {
		w.Doomed = ReasonExpired
	}
	return w
}

func (v *View) eachWaiting(from, to int64, may func([]byte) bool, f func(Waiting) bool) error {
	if v.tx.file == nil || to <= from {
		return nil
	}
	var wrong error
	err := lines.Each(io.NewSectionReader(v.tx.file, from, to-from), from, func(start, end int64, raw []byte, whole bool) bool {
		l := line{start: start, end: end, raw: raw, terminated: whole}
		switch {
		case len(raw) > MaxLine: // raw is only a part of the line
			if l, wrong = v.tx.lineAt(start, MaxLine); wrong != nil {
				wrong = ignoreEOF(wrong)
				return wrong == nil
			}
		case may != nil && !may(raw):
			return true
		default:
			l.raw = bytes.Clone(raw)
		}
		return l.blank() || f(v.tx.waiting(l))
	})
	return errors.Join(wrong, err)
}

// Head is the next entry, and since when it waits.
type Head struct {
	At Place
	// Since is when the entry came, according to its own line. Otherwise it is a time at which the entry was
	// already there, so that it may have waited for longer.
	Since time.Time
	// Noted means that later appends will not change Since.
	Noted bool
}

// Head returns the next entry, nil for none.
func (v *View) Head() (h *Head, err error) {
	long := false
	err = v.Waits(func(l []byte) bool {
		long = long || len(l) > longLine
		return !long
	}, func(w Waiting) bool {
		h = v.head(w)
		return false
	})
	if h == nil && long && err == nil {
		h = v.head(Waiting{Entry: Entry{Start: v.tx.settledEnd(), End: v.Size()}})
	}
	return h, err
}

func (v *View) head(w Waiting) *Head {
	st := &v.tx.st
	h := &Head{At: Place{st.QueueGeneration, w.Start}, Since: w.QueuedAt(), Noted: true}
	if !h.Since.IsZero() {
		return h
	}
	h.Since, h.Noted = v.WrittenAt(), false
	by := func(at time.Time) {
		if h.Noted = true; at.Before(h.Since) {
			h.Since = at
		}
	}
	if d := v.tx.redeliver; d != nil && d.StartOffset == w.Start {
		if by(d.DeliveredAt); d.Detached {
			return h
		}
	}
	if v.Replaced() != "" {
		return h
	}
	if w.End <= st.SeenSize {
		by(time.Unix(0, st.SeenMtime))
	}
	for _, s := range kept[[]reach](st.Reached) {
		if w.End <= s[0] {
			by(time.Unix(0, s[1]))
		}
	}
	return h
}

// Place is how far the queue file was read: see [View.Since].
type Place struct {
	generation int // of the queue file
	off        int64
}

// End returns the place behind the queue file's last whole line.
func (v *View) End() (Place, error) {
	p := Place{generation: v.tx.st.QueueGeneration}
	if v.tx.file == nil {
		return p, nil
	}
	off, err := lines.Start(v.tx.file, v.Size())
	p.off = off
	return p, inReading(err)
}

// Since calls f for every entry behind a place, delivered meanwhile or not, and returns the place behind them. If
// another file replaced the old one, it calls f for all entries. It leaves out a last line without its newline until
// the line has its newline or was delivered.
func (v *View) Since(p Place, f func(Waiting)) (Place, error) {
	if v.tx.file == nil {
		return p, nil
	}
	if p.generation != v.tx.st.QueueGeneration || p.off > v.Size() {
		p = Place{generation: v.tx.st.QueueGeneration}
	}
	from, err := v.tx.file.SkipZeros(p.off, v.Size())
	if err != nil {
		return p, inReading(err)
	}
	to, err := lines.Start(v.tx.file, v.Size())
	if v.tx.settledEnd() > to {
		to = v.Size()
	}
	if err == nil {
		err = v.eachWaiting(from, to, nil, func(w Waiting) bool { f(w); return true })
	}
	if err == nil {
		p.off = max(from, to)
	}
	return p, inReading(err)
}

// Counted is how far [View.Count] has counted, and the result so far.
type Counted struct {
	seq, from  int64
	generation int
	file       string
	end        int64 // of the last whole line
	whole      Backlog
}

// Count is [View.Backlog] for callers that count repeatedly; it also returns how far it has counted. If nothing was
// committed since last, which may be nil, and the queue file has at most grown, Count reads only what was appended. It
// then notices a waiting line that somebody edits in place only after the next commit.
func (v *View) Count(ctx context.Context, last *Counted) (b Backlog, now *Counted, err error) {
	from, err := v.waitsStart()
	if err != nil {
		return b, nil, fmt.Errorf("count what waits in %s: %w", v.tx.box.path, err)
	}
	now = &Counted{seq: v.tx.st.Seq, from: from, generation: v.tx.st.QueueGeneration, end: from}
	if v.tx.file != nil {
		now.file = v.tx.file.Identity()
	}
	// Both counts begin at the same line of the same file, with the same entries canceled.
	same := last != nil && last.seq == now.seq && last.from == now.from && last.generation == now.generation && last.file == now.file
	if same && v.Replaced() == "" && last.end <= v.Size() {
		now.end, now.whole = last.end, last.whole
	}
	torn, err := v.countLines(ctx, now, v.Size())
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

// Ahead counts the entries before the line that begins at start, except the one in flight. It reads at most
// most bytes: if more wait there, it returns -1.
func (v *View) Ahead(ctx context.Context, start, most int64) (entries int64, err error) {
	from, err := v.waitsStart()
	start = min(start, v.Size())
	if err == nil && start-from > most {
		return -1, nil
	}
	c, torn := Counted{end: from}, Backlog{}
	if err == nil {
		torn, err = v.countLines(ctx, &c, start)
	}
	if err != nil {
		return 0, fmt.Errorf("count what waits in %s: %w", v.tx.box.path, err)
	}
	if entries = c.whole.Entries + torn.Entries; v.tx.redeliver != nil {
		entries++
	}
	return entries, nil
}

// countLines adds the whole lines from c.end up to upTo, and returns an unfinished last line.
func (v *View) countLines(ctx context.Context, c *Counted, upTo int64) (torn Backlog, err error) {
	unread := upTo - c.end
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
