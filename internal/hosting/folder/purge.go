package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"heartbeat/internal/disk"
)

// KeptError says why a session's folder was not removed.
type KeptError struct{ ID, Reason string }

func (e *KeptError) Error() string { return "session " + e.ID + " is kept: " + e.Reason }

// Purge removes the folder of a session that ended before a time, under its lock. A
// session that has not ended, or of which something would be lost, is kept, with a
// [*KeptError]; one that somebody works on, with a [*BusyError]. unanswered removes
// it even if entries of its own inbox were not answered. What a killed Purge leaves
// is removed by the next one. The index is not changed.
func (f Folder) Purge(ctx context.Context, before time.Time, unanswered bool) error {
	lock, err := f.Lock(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = lock.purge(before, unanswered)
	return errors.Join(err, lock.Release())
}

func (l *Lock) purge(before time.Time, unanswered bool) error {
	f := l.folder
	s, err := f.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l.removeRest()
	case err != nil:
		return err
	}
	if why, err := keeps(f, s, before, unanswered); err != nil || why != "" {
		if err == nil {
			err = &KeptError{f.ID, why}
		}
		return err
	}
	if err := l.empty(); err != nil {
		return fmt.Errorf("remove the folder of session %s: %w", f.ID, err)
	}
	return l.removeRest()
}

// keeps says why a session is kept.
func keeps(f Folder, s *State, before time.Time, unanswered bool) (string, error) {
	if !s.Status.Ended() || s.EndedAt == nil {
		return "it has not ended", nil
	}
	if !s.EndedAt.Before(before) {
		return "it ended at " + s.EndedAt.UTC().Format(time.RFC3339), nil
	}
	if s.TerminalReport.State == "" || s.TerminalReport.State == Waiting {
		return "its end was not reported yet", nil
	}
	if left := s.Entries.Queued + s.Entries.InFlight; s.OwnInbox && left > 0 && !unanswered {
		return fmt.Sprintf("%d of its entries were not answered: see %s", left, f.InboxPath()), nil
	}
	spool, err := disk.StatName(f.SpoolPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case spool.Size > 0:
		return "messages that the database did not take are in " + f.SpoolPath(), nil
	}
	return "", nil
}

// empty removes all but the lock and the record, which says until then that the
// session has ended.
func (l *Lock) empty() error {
	dir := l.folder.Dir()
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name.Name())
		if path == l.folder.LockPath() || path == l.folder.StatePath() {
			continue
		}
		if err := os.RemoveAll(path); err != nil { // it follows no links
			return err
		}
	}
	return nil
}

// removeRest removes a folder in which nothing is but its lock, its record and empty
// directories: one that was emptied, or that a host left that died before its first
// record.
func (l *Lock) removeRest() error {
	f := l.folder
	if err := l.removeDirs(); err != nil {
		return err
	}
	if err := l.lock.Check(); err != nil {
		return fmt.Errorf("remove the folder of session %s: %w", f.ID, err)
	}
	// The lock's name goes last: until then nobody else can begin a session here.
	for _, path := range []string{f.StatePath(), f.StatePath() + ".tmp", f.LockPath()} {
		if err := disk.Remove(path); err != nil {
			return fmt.Errorf("remove the folder of session %s: %w", f.ID, err)
		}
	}
	if err := os.Remove(f.Dir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &KeptError{f.ID, "something was put into " + f.Dir() + " meanwhile"}
	}
	return nil
}

// removeDirs removes the directories in the folder, and keeps a folder with anything
// that a host which never wrote a record did not put there.
func (l *Lock) removeDirs() error {
	f := l.folder
	names, err := os.ReadDir(f.Dir())
	if err != nil {
		return fmt.Errorf("remove the folder of session %s: %w", f.ID, err)
	}
	for _, name := range names {
		switch path := filepath.Join(f.Dir(), name.Name()); path {
		case f.LockPath(), f.StatePath(), f.StatePath() + ".tmp":
		case filepath.Dir(f.InboxPath()), f.TempDir():
			if os.Remove(path) != nil {
				return &KeptError{f.ID, "it has no record of an end, and " + path + " is not empty"}
			}
		default:
			return &KeptError{f.ID, "it has no record of an end, and there is " + path}
		}
	}
	return nil
}
