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

// MayPurge returns what [Folder.Purge] would refuse to do, and changes nothing.
func (f Folder) MayPurge(before time.Time, unanswered bool) error {
	v, err := f.View()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case v.Host != 0:
		return &BusyError{ID: f.ID, PID: f.holderForPeople()}
	case v.State == nil:
		return keepsYoung(f, before)
	}
	return keeps(f, v.State, before, unanswered)
}

func (l *Lock) purge(before time.Time, unanswered bool) error {
	f := l.folder
	s, err := f.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := keepsYoung(f, before); err != nil {
			return err
		}
		return l.removeRest()
	case err != nil:
		return err
	}
	if err := keeps(f, s, before, unanswered); err != nil {
		return err
	}
	if err := l.empty(); err != nil {
		return fmt.Errorf("remove the folder of session %s: %w", f.ID, err)
	}
	return l.removeRest()
}

// keeps returns a [*KeptError] if a session is kept.
func keeps(f Folder, s *State, before time.Time, unanswered bool) error {
	kept := func(why string) error { return &KeptError{f.ID, why} }
	left := s.Entries.Queued + s.Entries.InFlight
	switch {
	case !s.Status.Ended() || s.EndedAt == nil:
		return kept("it has not ended")
	case !s.EndedAt.Before(before):
		return kept("it ended at " + s.EndedAt.UTC().Format(time.RFC3339))
	case s.TerminalReport.State == "" || s.TerminalReport.State == Waiting:
		return kept("its end was not reported yet")
	case !s.finished():
		return kept("its host was killed, and nobody has finished it")
	case s.OwnInbox && left > 0 && !unanswered:
		return kept(fmt.Sprintf("%d of its entries were not answered: see %s", left, f.InboxPath()))
	}
	spool, err := disk.StatName(f.SpoolPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at the spool of session %s: %w", f.ID, err)
	case spool.Size > 0:
		return kept("messages that the database did not take are in " + f.SpoolPath())
	}
	return nil
}

// keepsYoung returns a [*KeptError] if a folder without a record may be that of a
// session which is only starting.
func keepsYoung(f Folder, before time.Time) error {
	info, err := disk.StatName(f.Dir())
	switch {
	case err != nil:
		return fmt.Errorf("look at the folder of session %s: %w", f.ID, err)
	case info.Mtime >= before.UnixNano():
		return &KeptError{f.ID, "it has no record yet"}
	}
	return nil
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
