package inbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

func TestLockWaitIsBounded(t *testing.T) {
	box := newBox(t, oldContent)
	begin(t, box)
	before := snapshot(t, box)
	hurried, err := inbox.Open(box.Path(), inbox.Options{LockWait: time.Millisecond})
	require.NoError(t, err)
	_, err = hurried.Begin(context.Background())
	require.ErrorIs(t, err, inbox.ErrLocked)
	assert.ErrorContains(t, err, box.Path())
	_, err = hurried.Append(context.Background(), inbox.Message{Text: "x"}, 0)
	require.ErrorIs(t, err, inbox.ErrLocked)
	assert.Equal(t, before, snapshot(t, box))
}

// Without a bound, the context's end ends the wait.
func TestLockWaitEndsWithTheContext(t *testing.T) {
	box := newBox(t, oldContent)
	begin(t, box)
	why := errors.New("SIGTERM")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	patient, err := inbox.Open(box.Path(), inbox.Options{})
	require.NoError(t, err)
	_, err = patient.Begin(ctx)
	assert.ErrorIs(t, err, inbox.ErrLocked)
	assert.ErrorIs(t, err, why)
}

// A waiting process gets the lock once it is released, and sees what was done.
func TestLockIsHandedOver(t *testing.T) {
	box := newBox(t, oldContent)
	held := begin(t, box)
	patient, err := inbox.Open(box.Path(), inbox.Options{})
	require.NoError(t, err)
	text := make(chan string, 1)
	go func() {
		tx, err := patient.Begin(context.Background())
		if err != nil {
			text <- err.Error()
			return
		}
		text <- tx.InFlight().Text()
		_ = tx.Close() // the test has what it waits for
	}()
	e, err := held.Next(inbox.Mark{})
	require.NoError(t, err)
	_, err = held.Deliver(e, inbox.Recipient{})
	require.NoError(t, err)
	require.NoError(t, held.Commit())
	require.NoError(t, held.Close())
	assert.Equal(t, "one", <-text)
}

// An error on the way releases the lock.
func TestLockIsNotKeptAfterAnError(t *testing.T) {
	box := newBox(t, oldContent)
	write(t, beside(box, ".inbox-offset"), "none")
	for range 3 {
		_, err := box.Begin(context.Background())
		require.ErrorIs(t, err, inbox.ErrCorrupt)
	}
	require.NoError(t, os.Remove(beside(box, ".inbox-offset")))
	assert.Equal(t, []string{"one", "two", "three"}, drain(t, box))
}

func TestCloseTwice(t *testing.T) {
	tx, err := newBox(t, "").Begin(context.Background())
	require.NoError(t, err)
	require.NoError(t, tx.Close())
	assert.NoError(t, tx.Close())
}

// Transactions within a process exclude each other like those of many processes.
func TestTransactionsExcludeEachOther(t *testing.T) {
	box := newBox(t, "")
	var inside atomic.Int32
	require.NoError(t, all(20, func(int) error {
		tx, err := box.Begin(context.Background())
		if err != nil {
			return err
		}
		defer func() { _ = tx.Close() }() // nothing to lose
		if inside.Add(1) != 1 {
			return errors.New("two at once")
		}
		inside.Add(-1)
		return nil
	}))
}

// The holder of the lock is known without taking the lock, where the system tells.
func TestLock(t *testing.T) {
	box := newBox(t, oldContent)
	assert.Zero(t, box.Lock())
	assert.NoFileExists(t, beside(box, ".inbox-lock"))
	holder := child("hold", box).Start(t)
	require.Equal(t, "held", holder.Line(t))
	if runtime.GOOS == "linux" {
		assert.Positive(t, box.Lock())
		assert.NotEqual(t, os.Getpid(), box.Lock())
	}
	holder.Kill(t)
	assert.Zero(t, box.Lock())
	tx := begin(t, box)
	if runtime.GOOS == "linux" {
		assert.Equal(t, os.Getpid(), box.Lock())
	}
	require.NoError(t, tx.Close())
	assert.Zero(t, box.Lock())
}

// If the lock file is removed during a transaction, a second one can begin. The first must then
// commit nothing, since it would undo the second.
func TestLockFileGoneAmidATransaction(t *testing.T) {
	for name, remove := range map[string]func(path string) error{
		"removed": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		},
	} {
		for other, runs := range map[string]bool{"alone": false, "beside another": true} {
			t.Run(name+" "+other, func(t *testing.T) {
				box := newBox(t, "one\ntwo\n")
				first := begin(t, box)
				e, err := first.Next(inbox.Mark{})
				require.NoError(t, err)
				_, err = first.Deliver(e, inbox.Recipient{SessionID: "first"})
				require.NoError(t, err)
				require.NoError(t, remove(beside(box, ".inbox-lock")))
				if runs {
					settleNext(t, box, func(tx *inbox.Tx) error { return tx.Acknowledge("done") })
					deliver(t, box)
				}
				before := snapshot(t, box)
				err = first.Commit()
				require.ErrorIs(t, err, disk.ErrLockGone)
				assert.ErrorContains(t, err, beside(box, ".inbox-lock"))
				assert.Equal(t, before, snapshot(t, box))
				require.NoError(t, first.Close())
				if runs {
					acknowledge(t, box, "done")
					assert.Len(t, results(t, box), 2)
				} else {
					assert.Equal(t, []string{"one", "two"}, drain(t, box))
				}
			})
		}
	}
}

// If a transaction could not show its last commit in the files, the next holder of the lock does.
func TestLockFileGoneBehindACommit(t *testing.T) {
	box := newBox(t, "one\n")
	deliver(t, box)
	tx := begin(t, box)
	require.NoError(t, tx.Acknowledge("done"))
	stop := crash.Observe(t, func(op disk.Op) error {
		if op.Path == box.ResultsPath() && op.Kind == disk.OpWrite {
			return unix.EIO
		}
		return nil
	})
	require.NoError(t, tx.Commit())
	stop()
	require.NoError(t, os.Remove(beside(box, ".inbox-lock")))
	_, err := tx.Holds().Pause("x", nil)
	require.NoError(t, err)
	require.ErrorIs(t, tx.Commit(), disk.ErrLockGone)
	require.NoError(t, tx.Close())
	in(t, box, func(tx *inbox.Tx) { assert.Nil(t, tx.InFlight()) })
	assert.Len(t, results(t, box), 1)
}

// Once the lock file is another one, a transaction must not trim the journal: the commits of others stay.
func TestLockFileGoneAmidATrim(t *testing.T) {
	box := newBox(t, "one\ntwo\n")
	deliver(t, box)
	gone := false
	crash.Observe(t, func(op disk.Op) error {
		if op.Kind == disk.OpSync && op.Path == box.Path() && !gone {
			gone = true
			require.NoError(t, os.Remove(beside(box, ".inbox-lock")))
			acknowledge(t, box, "done")
		}
		return nil
	})
	for i := 0; !gone; i++ {
		require.Less(t, i, 1000, "the journal was never trimmed")
		in(t, box, func(tx *inbox.Tx) {
			_, err := tx.Holds().Pause(strings.Repeat("x", 4000), nil)
			require.NoError(t, err)
		})
	}
	in(t, box, func(tx *inbox.Tx) { assert.Nil(t, tx.InFlight(), "it was answered") })
	assert.Len(t, results(t, box), 1)
	assert.EqualValues(t, 1, totals(t, box).Answered, "which the journal alone knows")
}

// A hook that was started for another folder takes nothing from the one that has the name now, and changes nothing there.
func TestLockOfTheFolderItWasStartedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	path := filepath.Join(dir, "inbox.jsonl")
	fill := func() {
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
	}
	fill()
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	assert.Equal(t, "/", box.LockIdentity(), "nobody has locked it yet")
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".launch-lock"), nil, 0o600))
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, tx.Close())
	bound, err := inbox.Open(path, inbox.Options{Lock: box.LockIdentity()})
	require.NoError(t, err)
	tx, err = bound.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, tx.Close())

	require.NoError(t, os.Remove(filepath.Join(dir, ".inbox-lock")))
	tx, err = bound.Begin(t.Context())
	require.NoError(t, err, "only its lock was removed")
	require.NoError(t, tx.Close())

	require.NoError(t, os.Rename(dir, dir+".old"))
	fill()
	_, err = bound.Begin(t.Context())
	require.ErrorContains(t, err, "is another one than this session was started for")
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, names, 2, "the inbox and its lock")
}
