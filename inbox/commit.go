package inbox

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
)

// ErrUnfollowed means that a commit stands, but the files do not show it. Do not hand over what it delivered: until the
// files can follow, no answer can be recorded.
var ErrUnfollowed = errors.New("the files do not show the last commit")

type unfollowed struct{ error }

func (unfollowed) Is(target error) bool { return target == ErrUnfollowed }
func (u unfollowed) Unwrap() error      { return u.error }

// Commit makes the transaction's changes durable, all or none, with one synced write. After an error nothing changed,
// unless the error matches [ErrUncertain] or [ErrUnfollowed]. The transaction stays open for more changes.
//
// The documented files follow after the commit. If that fails the commit still stands: there is a warning,
// or [ErrUnfollowed] after a delivery, and the next transaction tries again.
func (t *Tx) Commit() error {
	if !t.dirty {
		return nil
	}
	switch {
	case t.viewing():
		return errors.New("commit: this is a view")
	case t.failed != nil:
		return fmt.Errorf("commit: %w", t.failed)
	}
	if err := t.store.CatchUp(t.settledEnd()); err != nil {
		return err
	}
	next := t.st
	if slices.ContainsFunc(t.pending, func(l journal.Line) bool { return l.Kind == journal.Queue }) {
		if err := t.mayAppend(); err != nil {
			return err
		}
	}
	if err := t.syncQueue(&next); err != nil {
		return err
	}
	if err := t.plan(&next); err != nil {
		return err
	}
	if err := t.store.Commit(&next); err != nil {
		return err
	}
	t.st, t.dirty, t.pending, t.reanchor = next, false, nil, false
	t.person, t.brought = false, t.brought || t.person
	err := t.store.Follow(t.settledEnd())
	if len(t.store.Appended()) > 0 { // the queue file has grown, or is new
		err = errors.Join(err, t.openFile())
	}
	for _, name := range t.forget {
		if err := disk.Remove(t.box.beside(name)); err != nil { // a file that remains does no harm
			t.warn("%v: remove it by hand", err)
		}
	}
	t.forget = nil
	delivers := t.delivers
	if t.delivers = false; err != nil && delivers {
		return unfollowed{fmt.Errorf("committed, but the files in %s do not show it yet, and could not show an answer: %w", t.box.dir, err)}
	}
	if err != nil {
		t.warn("committed, but the files in %s do not show it yet, and will with the next step: %v", t.box.dir, err)
	}
	return nil
}

// plan completes the next record.
func (t *Tx) plan(next *journal.Record) (err error) {
	next.Version, next.Seq = journal.Format, t.st.Seq+1
	next.Lock, next.LockMtime, next.Boot = t.lockID, t.lockMtime, t.boot
	next.Handed = t.st.Handed && t.inFlight != nil
	t.remember(next)
	if t.inFlight != nil && next.InFlight == nil {
		if next.InFlight, err = t.inFlight.encode(); err != nil {
			return err
		}
	}
	if t.redeliver != nil && next.Redeliver == nil {
		if next.Redeliver, err = t.redeliver.encode(); err != nil {
			return err
		}
	}
	if next.Canceled, err = t.encodeCanceled(); err != nil {
		return err
	}
	if t.totals != nil {
		next.Totals = t.totals.encode()
	}
	if account := t.accountant.Record(); account != nil {
		next.Account = account
	}
	if err := t.store.Place(next, t.pending, t.file); err != nil {
		return err
	}
	rememberOwn(next)
	t.endReread(next)
	return nil
}

// ReplaceFile puts a copy in place of an append-only file, and notes the letters that are purged. Both files must be
// durable already.
//
// The commit comes first and raises the file's generation: older records of the journal then no longer vouch for its
// lines, which would otherwise be restored.
func (t *Tx) ReplaceFile(kind journal.Kind, by string, purged []Letter) error {
	for _, l := range purged {
		t.forgetLate(l.Letter)
		t.addEvent(Event{Event: EventPurged, EntryID: l.EntryID, ID: l.ID, Reason: "dead letter " + l.Letter})
	}
	t.st.Ends[kind].Generation++
	t.dirty = true
	err := t.Commit()
	if err == nil {
		err = t.store.StillLocked()
	}
	if err != nil {
		return err
	}
	file := t.store.File(kind)
	return errors.Join(file.Close(), disk.Rename(by, file.Path()))
}

// mayAppend returns an error if this user may not write the queue file. A commit with lines for it could never
// be finished, and no other could follow it.
func (t *Tx) mayAppend() error {
	if t.file == nil {
		return nil
	}
	f, err := disk.OpenForeign(t.box.path, unix.O_WRONLY)
	return errors.Join(err, f.Close())
}

// syncQueue syncs lines that are delivered or that the cursor passes. If a power loss took such a line back, the cursor
// would be beyond the end, and everything would be read again.
func (t *Tx) syncQueue(next *journal.Record) error {
	needed := max(next.Cursor, t.inFlightEnd())
	another := t.file != nil && t.file.Identity() != next.SeenFile
	if t.file == nil || needed == 0 || needed <= next.SyncedTo && !another {
		return nil
	}
	err := t.file.Sync()
	if err == nil && (next.SyncedTo == 0 || another) {
		err = disk.SyncDir(t.box.dir)
	}
	if err != nil {
		return fmt.Errorf("commit: make %s durable up to offset %d, which is to be passed: %w", t.box.path, needed, err)
	}
	next.SyncedTo = t.queueSize()
	return nil
}
