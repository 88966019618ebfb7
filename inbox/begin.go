package inbox

import (
	"context"
	"errors"
)

// Begin takes the inbox's lock and reads the state. It waits for the lock for
// [Options].LockWait at most, or until ctx is done; then the error matches
// [ErrLocked]. It finishes first what a killed transaction left undone. Always
// close the transaction.
func (b *Inbox) Begin(ctx context.Context) (*Tx, error) {
	lock, err := b.lock(ctx)
	if err != nil {
		return nil, err
	}
	t := b.newTx(lock)
	t.lockID, t.lockMtime = lock.Identity(), lock.Mtime()
	if err := t.load(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// makeGood finishes what a killed transaction left undone.
func (b *Inbox) makeGood(ctx context.Context) (warnings []string, err error) {
	t, err := b.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return t.Warnings(), t.Close()
}

// Close releases the lock. Changes that were not committed are lost.
func (t *Tx) Close() error {
	if t.closed {
		return nil
	}
	t.closed = true
	return errors.Join(t.survived(), t.file.Close(), t.store.Close(), t.lock.Release())
}

func (t *Tx) load() error {
	l, err := t.read()
	if err != nil {
		return err
	}
	if !l.Settled {
		if err := t.store.Replay(t.inFlightEnd(), t.settledEnd()); err != nil {
			return err
		}
		if err := t.openFile(); err != nil { // it has got what was missing
			return err
		}
		t.responded = t.inFlight != nil
	} else if err := t.takeOver(); err != nil {
		return err
	}
	if err := t.finishHole(); err != nil {
		return err
	}
	if err := t.recognise(); err != nil {
		return err
	}
	if t.noticed {
		if err := t.Commit(); err != nil {
			return err
		}
	}
	if err := t.moveForeignAside(); err != nil {
		return err
	}
	if t.notMoved = t.promote(); t.notMoved != nil {
		t.due = nanoseconds(t.box.opts.Now().Add(promoteAgain))
		t.warn("scheduled entries that are due keep waiting, and the next transaction tries again: %v", t.notMoved)
	}
	return nil
}
