package journal

import (
	"fmt"
	"slices"
)

// Replay does what a kill or a power loss kept from following the last record.
// inFlightEnd is where the entry in flight ends in the queue file, 0 without one;
// settled is how far the queue file was delivered or settled.
//
// After a power loss any result since the journal was last shortened may be
// missing. In one boot only what the last commit was to add may be; whatever else
// is missing, somebody has taken away. A dead letter is synced before the mark is
// written, so with a mark it is where it was, or an operator has taken it away.
//
// A kill may have come before the commit's own sync, so that comes first: the
// files must not show what a power loss would take back.
func (s *Store) Replay(inFlightEnd, settled int64) error {
	err := s.log.settle()
	if err != nil {
		return err
	}
	last, marked := &s.last, s.marked
	err = s.log.each(s.boot, func(r *Record, followed bool) error {
		if last.Boot == s.boot && r.Seq < last.Seq {
			return nil // a record is only followed by another once the files show it
		}
		return s.write(slices.DeleteFunc(r.Appends, func(l Line) bool {
			return !last.needs(l, r.Seq, inFlightEnd) ||
				l.Kind != Queue && (kinds[l.Kind].synced && marked || kinds[l.Kind].rotated && followed)
		}), settled, false)
	})
	if err == nil {
		err = s.show()
	}
	if err == nil && marked { // a new boot: the next one need not do this again
		err = s.shorten()
	}
	if err != nil {
		return fmt.Errorf("finish the last commit in %s: %w", s.dir, err)
	}
	return nil
}

// needs reports whether a line of the record of that number must be where it was
// to go, now that r is the last record.
func (r *Record) needs(l Line, seq, inFlightEnd int64) bool {
	if l.Kind == Queue { // it waits, and the queue file was not replaced since
		return l.Generation == r.QueueGeneration && l.At >= max(r.Cursor, inFlightEnd)
	}
	return l.Generation == r.Ends[l.Kind].Generation && (!kinds[l.Kind].synced || seq == r.Seq)
}
