package inbox

import (
	"errors"
	"fmt"
	"slices"

	"heartbeat/internal/disk"
)

// Commit makes the transaction's changes durable, all or none, with one synced
// write. After an error nothing changed, unless it matches [ErrUncertain]. The
// transaction stays open for more.
//
// The documented files follow after the commit. Should that fail, the commit
// stands all the same: there is a warning, and the next transaction repeats it.
func (t *Tx) Commit() error {
	if !t.dirty {
		return nil
	}
	if t.viewing {
		return errors.New("commit: this is a view")
	}
	if err := t.catchUp(); err != nil {
		return err
	}
	next := t.st
	if err := t.syncQueue(&next); err != nil {
		return err
	}
	if err := t.plan(&next); err != nil {
		return err
	}
	if err := t.stillLocked(); err != nil {
		return err
	}
	if err := t.journal.commit(t.box.file(journalName), next.encode()); err != nil {
		return err
	}
	t.st, t.dirty, t.pending, t.reanchor = next, false, nil, false
	t.queued = plannedSpans(next.Appends)
	err := t.follow()
	if len(t.queued) > 0 { // the queue file has grown, or is there only now
		err = errors.Join(err, t.openFile())
	}
	t.removeForgotten()
	if err != nil {
		t.warn("committed, but the files in %s do not show it yet, and will with the next step: %v", t.box.dir, err)
	}
	return nil
}

// stillLocked is what keeps two transactions from taking back each other's
// commits where somebody removed the lock file amid one of them.
func (t *Tx) stillLocked() error {
	if err := t.lock.Check(); err != nil {
		return fmt.Errorf("another transaction may be under way, so nothing more was changed: leave the lock file alone, and try again: %w", err)
	}
	return nil
}

// plan completes the record to be committed.
func (t *Tx) plan(next *state) (err error) {
	next.Version, next.Seq, next.Appends = stateVersion, t.st.Seq+1, nil
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
	for _, a := range t.pending {
		planned := func(other appendRecord) bool { return other.File == a.File }
		last := lastFunc(next.Appends, planned)
		if a.File == queueName {
			a, err = t.planQueueAppend(a, last)
		} else {
			a, err = t.planAppend(a, next, last != nil)
		}
		if err != nil {
			return err
		}
		next.Appends = append(next.Appends, a)
	}
	rememberOwn(next)
	return nil
}

func lastFunc(all []appendRecord, match func(appendRecord) bool) *appendRecord {
	for i, a := range slices.Backward(all) {
		if match(a) {
			return &all[i]
		}
	}
	return nil
}

// planAppend decides where a line goes. again says that this commit has lines
// for the file already, which its size does not show yet.
func (t *Tx) planAppend(a appendRecord, next *state, again bool) (appendRecord, error) {
	end, generation := next.appendPoint(a.File)
	if !again {
		size, whole, err := lineEnd(t.appendFile(a.File))
		if err != nil {
			return a, err
		}
		if size < *end {
			*generation++ // rotated away or truncated since
		}
		*end, a.Newline = size, !whole
	}
	a.At, a.Generation = *end, *generation
	*end += int64(len(a.bytes()))
	return a, nil
}

// lineEnd is the size of an append-only file, and whether it ends in a newline.
func lineEnd(file *stateFile) (size int64, whole bool, err error) {
	f, _, err := file.made()
	if err != nil {
		return 0, false, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	whole, err = endsLine(f, info.Size)
	return info.Size, whole, err
}

func (t *Tx) appendFile(name string) *stateFile {
	switch name {
	case resultsName:
		return &t.results
	case eventsName:
		return &t.events
	case scheduledName:
		return &t.scheduled
	}
	return &t.deadLetters
}

// syncQueue makes sure that a power loss cannot take back a line that was
// delivered, or that the cursor is past: it would then point beyond the end, and
// everything would be read again.
func (t *Tx) syncQueue(next *state) error {
	needed := next.Cursor
	if d := t.inFlight; d != nil && !d.Detached {
		needed = max(needed, d.EndOffset)
	}
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
	next.SyncedTo = t.size()
	return nil
}
