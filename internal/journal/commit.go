package journal

import (
	"errors"
	"fmt"
	"slices"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// Commit makes a record durable. After an error nothing changed, unless the error matches [ErrUncertain].
// [Store.Follow] then updates the other files.
func (s *Store) Commit(r *Record) error {
	if err := s.StillLocked(); err != nil {
		return err
	}
	if err := s.log.commit(s.path(), r.encode()); err != nil {
		return err
	}
	s.last, s.appended = *r, nil
	for _, l := range r.Appends {
		if l.Kind == Queue { // its planned place
			s.appended = append(s.appended, spanOf(l, l.At+l.size()))
		}
	}
	s.behind, s.followed = true, false
	return nil
}

// Follow updates the other files to the last commit. After an error the commit still stands. settled is how
// far the queue file was delivered or settled.
//
// Only the files from which an operator may remove lines are synced. The journal can restore the others until it is
// shortened, and shortening syncs them.
func (s *Store) Follow(settled int64) error {
	if err := s.write(s.last.Appends, settled, true); err != nil {
		return err
	}
	s.behind = false
	err := s.show()
	s.followed = err == nil
	return err
}

// CatchUp writes the lines of the last commit if [Store.Follow] could not: once there is a newer record, only the lines
// of that one are restored.
func (s *Store) CatchUp(settled int64) error {
	if !s.behind {
		return nil
	}
	if err := s.StillLocked(); err != nil {
		return err
	}
	if err := s.write(s.last.Appends, settled, false); err != nil {
		return fmt.Errorf("commit: the files in %s do not show the last commit yet: %w", s.dir, err)
	}
	s.behind = false
	return nil
}

// Appended returns the places of the lines that the last commit added to the queue file.
func (s *Store) Appended() []Span { return s.appended }

// Changed reports whether lines of an earlier commit were added to the queue file, so that its inode shows
// heartbeat's own change.
func (s *Store) Changed() bool { return s.changed }

// Followed reports whether the other files show the last commit.
func (s *Store) Followed() bool { return s.followed }

// HandedOver notes, without a sync, that the entry in flight was handed over.
func (s *Store) HandedOver() error {
	return s.log.add(mark{Followed: s.last.Seq, Boot: s.boot, Handed: true})
}

// Place plans where the lines of the next commit go, and notes that in its record r. queue is the open queue file, or
// nil. A line for the queue gets its planned place only if nobody else appends meanwhile.
func (s *Store) Place(r *Record, pending []Line, queue *disk.File) error {
	r.Appends = nil
	var last [Queue + 1]*Line // of this commit, by file: no file's size includes them yet
	for _, l := range pending {
		before := last[l.Kind]
		switch {
		case l.Kind != Queue:
			end := &r.Ends[l.Kind]
			if before == nil {
				f, size, err := s.files[l.Kind].openOrCreate()
				if err != nil {
					return err
				}
				whole, err := lines.Ends(f, size)
				if err != nil {
					return err
				}
				if size < end.At {
					end.Generation++ // rotated away or truncated since
				}
				end.At, l.Newline = size, !whole
			}
			l.At, l.Generation = end.At, end.Generation
			end.At += l.size()
		case before != nil:
			l.At, l.Generation = before.At+before.size(), r.QueueGeneration
		default:
			if l.Generation = r.QueueGeneration; queue != nil {
				size := queue.Info().Size
				whole, err := lines.Ends(queue, size)
				if err != nil {
					return err
				}
				l.At, l.Newline = size, !whole || l.Data != nil // see unglue
			}
		}
		r.Appends = append(r.Appends, l)
		last[l.Kind] = &r.Appends[len(r.Appends)-1]
	}
	return nil
}

// Replay completes the last record after a kill or a power loss. inFlightEnd is where the entry in flight
// ends in the queue file, 0 for none; settled is how far the queue file was delivered or settled.
//
// After a power loss any result since the journal was last shortened may be missing. Within one boot only lines of the
// last commit may be missing; somebody removed any other. A dead letter is synced before the mark is written: if there
// is a mark and the letter is missing, an operator removed it.
//
// The journal is synced first, since a kill may have preceded the commit's own sync: the files must not show what a
// power loss would take back.
func (s *Store) Replay(inFlightEnd, settled int64) error {
	err := s.log.file.Sync()
	if err == nil {
		err = disk.SyncDir(s.dir)
	}
	if err != nil {
		return fmt.Errorf("sync the last commit: %w", err)
	}
	last, marked := &s.last, s.marked
	err = s.log.each(s.boot, func(r *Record, followed bool) error {
		if last.Boot == s.boot && r.Seq < last.Seq {
			return nil // the next record is only written once the files show this one
		}
		return s.write(slices.DeleteFunc(r.Appends, func(l Line) (needless bool) {
			if l.Kind == Queue { // needless if it was settled, or if the queue file was replaced since
				return l.Generation != last.QueueGeneration || l.At < max(last.Cursor, inFlightEnd)
			}
			there := followed
			if kinds[l.Kind].synced {
				there = marked || r.Seq != last.Seq
			}
			return there || l.Generation != last.Ends[l.Kind].Generation
		}), settled, false)
	})
	if err == nil {
		err = s.show()
	}
	if err == nil && marked { // a new boot: a short journal saves the next transaction all this
		err = s.shorten()
	}
	if err != nil {
		return fmt.Errorf("finish the last commit in %s: %w", s.dir, err)
	}
	return nil
}

// shorten removes the journal's records before the last. It first syncs the lines that only those records vouch for.
func (s *Store) shorten() error {
	if err := s.syncVouchedFor(); err != nil {
		return err
	}
	r := s.last
	r.Appends = nil
	record := sumLine(r.encode())
	if err := s.StillLocked(); err != nil { // otherwise commits of another process would be lost with the old journal
		return err
	}
	if err := disk.Publish(s.path(), fill(record), true); err != nil {
		return err
	}
	if err := s.log.file.Close(); err != nil {
		return err
	}
	var err error
	if s.log, err = openLog(s.path(), disk.OpenExisting); err != nil {
		return err
	}
	s.log.end = int64(len(record))
	// The mark is not published with the record: a kill before the directory's sync must leave a journal that the
	// next transaction syncs and replays first.
	return s.log.add(mark{Followed: r.Seq, Boot: s.boot})
}

// syncVouchedFor makes durable the lines that only the journal vouches for.
func (s *Store) syncVouchedFor() error {
	for k, row := range kinds {
		if row.synced {
			continue
		}
		f, err := s.files[k].Existing()
		if err == nil && f != nil {
			err = f.Sync()
		}
		if err != nil {
			return err
		}
	}
	queue, err := OpenQueue(s.queue)
	if queue != nil {
		err = errors.Join(queue.Sync(), queue.Close())
	}
	if err != nil {
		return err
	}
	return disk.SyncDir(s.dir)
}
