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
// is removed by the next one, or by [Index.Prune]. The index is not changed.
func (f Folder) Purge(ctx context.Context, before time.Time, unanswered bool) error {
	lock, err := f.Lock(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return f.removeGone()
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

// purge renames the folder, so that it is gone at once and whole, and removes it then.
func (l *Lock) purge(before time.Time, unanswered bool) error {
	f := l.folder
	s, err := f.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err = keepsYoung(f, before); err == nil {
			err = f.removeDirs()
		}
	case err == nil:
		err = keeps(f, s, before, unanswered)
	}
	if err != nil {
		return err
	}
	err = errors.Join(l.lock.Check(), f.removeGone())
	if err == nil {
		err = disk.Rename(f.Dir(), f.gone())
	}
	if err = errors.Join(err, f.removeGone()); err != nil {
		return fmt.Errorf("remove the folder of session %s: %w", f.ID, err)
	}
	return nil
}

// gone is what a folder is called while it is removed. No id begins with a dot.
func (f Folder) gone() string { return filepath.Join(Root(f.DB), "."+f.ID+".gone") }

// removeGone removes what a purge has renamed, this one or one that was killed.
func (f Folder) removeGone() error { return os.RemoveAll(f.gone()) } // it follows no links

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

// removeDirs removes the empty directories of a folder without a record, and keeps one
// with anything that a host which never wrote a record did not put there.
func (f Folder) removeDirs() error {
	names, err := os.ReadDir(f.Dir())
	if err != nil {
		return fmt.Errorf("remove the folder of session %s: %w", f.ID, err)
	}
	for _, name := range names {
		switch path := filepath.Join(f.Dir(), name.Name()); {
		case path == f.LockPath() || path == f.StatePath()+".tmp":
		case name.IsDir() && os.Remove(path) == nil:
		default:
			return &KeptError{f.ID, "it has no record of an end, and there is " + path}
		}
	}
	return nil
}
