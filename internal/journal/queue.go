package journal

import (
	"errors"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// writeQueue appends committed lines to the queue file: all of them where the
// commit is fresh, and otherwise what is not there already. Other programs append
// without the lock, so the lines may end up behind the offsets that the commit
// planned.
func (s *Store) writeQueue(all []Line, settled int64, fresh bool) (err error) {
	if len(all) == 0 {
		return nil
	}
	f, _, err := disk.OpenAppend(s.queue)
	if err != nil {
		return err
	}
	q := &queueFile{f, settled, s.last.SyncedTo, s.warn}
	defer func() { err = errors.Join(err, f.Close()) }()
	switch size := f.Info().Size; {
	case size == all[0].At:
	case fresh:
		whole, err := lines.Ends(f, size)
		if err != nil {
			return err
		}
		all[0].Newline = !whole || all[0].Data != nil
	default:
		for i := range all {
			if err := s.complete(q, all, i); err != nil {
				return err
			}
		}
		return nil
	}
	s.changed = s.changed || !fresh
	b, _ := joined(all)
	at, err := q.add(b, all[0].At)
	if err != nil {
		return err
	}
	for i, l := range all {
		at += l.size()
		s.noteAppended(i, l, at)
	}
	return nil
}

// noteAppended notes where the i-th line of a commit ends in the queue file.
func (s *Store) noteAppended(i int, l Line, end int64) {
	if i < len(s.appended) { // nobody asks about the lines of an earlier commit
		s.appended[i] = spanOf(l, end)
	}
}

// plannedSpans is where a commit wants its lines of the queue file.
func plannedSpans(all []Line) (spans []Span) {
	for _, l := range all {
		if l.Kind == Queue {
			spans = append(spans, spanOf(l, l.At+l.size()))
		}
	}
	return spans
}

func spanOf(l Line, end int64) Span { return Span{end - int64(len(l.content())) - 1, end} }

// complete writes what the queue file lacks of the i-th line of a commit.
func (s *Store) complete(q *queueFile, all []Line, i int) error {
	l := all[i]
	rest, at, err := missing(q.File, l)
	if err != nil || len(rest) == 0 {
		return err
	}
	s.changed = true
	if at < q.Info().Size { // as missing found it: others may have appended since
		return mend(q.File, rest, at)
	}
	if begun := at - l.At; begun > 0 && begun == l.size()-int64(len(rest)) {
		if at, err = q.finish(l, rest, at); err != nil {
			return err
		}
	} else if mended, err := q.unglue(all[i:]); err != nil || mended {
		return err
	} else if at, err = q.add(rest, l.At); err != nil {
		return err
	}
	s.noteAppended(i, l, at+int64(len(rest)))
	return nil
}
