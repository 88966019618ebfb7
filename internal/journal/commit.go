package journal

import (
	"fmt"
)

// Commit makes a record durable. After an error nothing changed, unless it matches
// [ErrUncertain]. [Store.Follow] then brings the other files to what it says.
func (s *Store) Commit(r *Record) error {
	if err := s.StillLocked(); err != nil {
		return err
	}
	if err := s.log.commit(s.path(), r.encode()); err != nil {
		return err
	}
	s.last, s.appended = *r, plannedSpans(r.Appends)
	s.behind, s.followed = true, false
	return nil
}

// Follow brings the other files to what the last commit says. After an error the
// commit stands all the same. settled is how far the queue file was delivered or
// settled.
//
// Only what an operator may take away again is synced: the journal can make the
// rest good until it is shortened, and shortening syncs it.
func (s *Store) Follow(settled int64) error {
	if err := s.write(s.last.Appends, settled, true); err != nil {
		return err
	}
	s.behind = false
	err := s.show()
	s.followed = err == nil
	return err
}

// CatchUp puts the lines of the last commit where it said, if [Store.Follow] could
// not: once another record follows, only that one is made good.
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

// Appended is where the lines that the last commit added to the queue file are.
func (s *Store) Appended() []Span { return s.appended }

// Changed reports whether lines of an earlier commit were added to the queue file:
// what its inode tells is then our own doing.
func (s *Store) Changed() bool { return s.changed }

// Followed reports whether the other files show the last commit.
func (s *Store) Followed() bool { return s.followed }

// HandedOver notes, without a sync, that the entry in flight was handed over.
func (s *Store) HandedOver() error {
	return s.log.add(mark{Followed: s.last.Seq, Boot: s.boot, Handed: true})
}
