package journal

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// shorten takes away the journal's records before the last. What only they vouch
// for is synced first.
func (s *Store) shorten() error {
	if err := s.syncVouchedFor(); err != nil {
		return err
	}
	r := s.last
	r.Appends = nil
	record := sumLine(r.encode())
	if err := s.StillLocked(); err != nil { // others' commits would go with the old one
		return err
	}
	if err := disk.Publish(s.path(), fill(record), true); err != nil {
		return err
	}
	if err := s.log.close(); err != nil {
		return err
	}
	l, err := openLog(s.path(), disk.OpenExisting)
	if err != nil {
		s.log = &log{}
		return err
	}
	s.log = l
	s.log.end = int64(len(record))
	// Not published along with the record: a kill before the directory's sync
	// must leave a journal that the next transaction settles first.
	return s.log.add(mark{Followed: r.Seq, Boot: s.boot})
}

// syncVouchedFor makes durable what only the journal vouches for until then.
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
	if err := s.syncQueue(); err != nil {
		return err
	}
	return disk.SyncDir(s.dir)
}

func (s *Store) syncQueue() error {
	f, err := disk.OpenForeign(s.queue, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
