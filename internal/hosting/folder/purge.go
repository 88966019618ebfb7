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
	"heartbeat/internal/hosting/store"
)

// KeptError is the reason why a session's folder was not removed.
type KeptError struct{ ID, Reason string }

func (e *KeptError) Error() string { return "session " + e.ID + " is kept: " + e.Reason }

// Purge removes, under its lock, the folder and record of a session that ended before a time. The error is a
// [*KeptError] if the session has not ended or its removal would lose something, and a [*BusyError] if another
// process works on it. unanswered permits losing unanswered entries of its own inbox. A later Purge removes
// what a killed one left.
func (f Folder) Purge(ctx context.Context, before time.Time, unanswered bool) error {
	lock, err := f.Lock(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return f.removeGone()
	}
	if err != nil {
		return err
	}
	err = lock.Purge(ctx, before, unanswered)
	return errors.Join(err, lock.Release())
}

// MayPurge returns the error with which [Folder.Purge] would refuse if nobody works on the session. It changes nothing.
func (f Folder) MayPurge(before time.Time, unanswered bool) error {
	if there, err := f.Exists(); err != nil || !there {
		return err
	}
	db := f.store()
	defer db.Close() // only read
	return f.mayPurge(db, before, unanswered)
}

func (f Folder) mayPurge(db *store.Store, before time.Time, unanswered bool) error {
	s, err := f.read(db)
	marked, markErr := disk.Exists(f.purged())
	switch {
	case err == nil:
		return checkPurge(f, db, s, before, unanswered)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case marked || markErr != nil:
		return markErr
	}
	return checkPurgeEmpty(f, before)
}

// Purge is [Folder.Purge] for the lock's holder. It first marks the folder, which then counts as gone even after a kill.
// Then it deletes the record, renames the folder, which so disappears at once and whole, and removes the folder.
func (l *Lock) Purge(ctx context.Context, before time.Time, unanswered bool) error {
	f := l.Folder
	err := f.mayPurge(l.DB, before, unanswered)
	if err == nil {
		err = disk.Touch(f.purged())
	}
	if err != nil {
		return err
	}
	err = errors.Join(l.lock.Check(), f.removeGone())
	// Without a record Forget could only wait for a locked database.
	if _, unread := f.read(l.DB); err == nil && !errors.Is(unread, fs.ErrNotExist) {
		err = l.DB.Forget(ctx, f.ID)
	}
	if err == nil {
		err = disk.Rename(f.Dir(), f.gone())
	}
	if err = errors.Join(err, f.removeGone()); err != nil {
		return fmt.Errorf("remove the folder of session %s: %w", f.ID, err)
	}
	return nil
}

// purged is the path of the mark of a folder whose record is deleted, or about to be.
func (f Folder) purged() string { return filepath.Join(f.Dir(), "purged") }

// gone is the folder's name while it is removed. No ID begins with a dot.
func (f Folder) gone() string { return filepath.Join(Root(f.DB), "."+f.ID+".gone") }

// removeGone removes the folder that this purge, or a killed one, has renamed.
func (f Folder) removeGone() error { return os.RemoveAll(f.gone()) } // RemoveAll follows no links

// checkPurge returns a [*KeptError] if a session is kept.
func checkPurge(f Folder, db *store.Store, s *State, before time.Time, unanswered bool) error {
	kept := func(why string) error { return &KeptError{f.ID, why} }
	left := s.Entries.Queued + s.Entries.InFlight
	report, waits, err := db.Report(context.Background(), f.ID, store.Record)
	switch {
	case err != nil:
		return err
	case waits && report.State != store.Sent: // the record names the guild
		return kept("its guild does not have the report of its end: heartbeat-host drain-dlq --once sends it, after a refusal only with --refused")
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
	return nil
}

// checkPurgeEmpty returns a [*KeptError] if a folder without a record may belong to a session that is
// still starting, or holds anything besides what a host makes before its first record.
func checkPurgeEmpty(f Folder, before time.Time) error {
	info, err := disk.StatName(f.Dir())
	var names []fs.DirEntry
	if err == nil {
		names, err = os.ReadDir(f.Dir())
	}
	switch {
	case err != nil:
		return fmt.Errorf("read the folder of session %s: %w", f.ID, err)
	case info.Mtime >= before.UnixNano():
		return &KeptError{f.ID, "it has no record yet"}
	}
	for _, name := range names {
		path := filepath.Join(f.Dir(), name.Name())
		if below, err := os.ReadDir(path); path != f.LockPath() && (err != nil || len(below) > 0) {
			return &KeptError{f.ID, "it has no record of an end, and there is " + path}
		}
	}
	return nil
}
