package inbox

import (
	"context"
	"errors"
	"fmt"
	"io"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// rewriting replaces an append-only file by a copy without the lines that keep
// rejects. It copies what is there without the inbox's lock, and under the lock
// only what came since.
type rewriting struct {
	box  *Inbox
	kind journal.Kind
	keep func(line []byte) bool
	// with adds to the commit, if not nil.
	with func(*Tx) error
	// begin is called before each try, and still under the lock before the new file takes the old
	// one's place: false has it start over. Both may be nil.
	begin func() error
	still func() (bool, error)

	tmp     *disk.Lock // the new file, locked by whoever writes it
	of      string     // the identity of the old file
	from    int64      // how much of it was copied
	to      int64      // how much of the new file was written
	dropped int
}

// rewriteTries bounds how often it starts over because somebody rotated the file
// meanwhile.
const rewriteTries = 5

var errRotated = errors.New("somebody keeps rotating it: try again later")

// run rewrites the file. It is durable when it returns; a kill leaves the old
// file or the new one.
func (w *rewriting) run(ctx context.Context) (warnings []string, err error) {
	for try := 0; ; try++ {
		again, said, err := w.attempt(ctx)
		warnings = append(warnings, said...)
		if err == nil && again && try == rewriteTries {
			err = errRotated
		}
		if err != nil {
			return warnings, fmt.Errorf("rewrite %s: %w", w.box.fileOf(w.kind), err)
		}
		if !again {
			return warnings, nil
		}
	}
}

// trimSuffix ends the name of a file that is being rewritten.
const trimSuffix = ".trim.tmp"

func (w *rewriting) copyPath() string { return w.box.fileOf(w.kind) + trimSuffix }

func (w *rewriting) attempt(ctx context.Context) (again bool, warnings []string, err error) {
	w.of, w.from, w.to, w.dropped = "", 0, 0, 0
	if w.begin != nil {
		if err := w.begin(); err != nil {
			return false, nil, err
		}
	}
	if w.tmp, err = disk.AcquireLock(ctx, w.copyPath(), w.box.opts.LockWait); err != nil {
		return false, nil, err
	}
	published := false
	defer func() {
		if !published {
			err = errors.Join(err, disk.Remove(w.copyPath()))
		}
		err = errors.Join(err, w.tmp.Release())
	}()
	if err := w.tmp.File().Truncate(0); err != nil {
		return false, nil, err
	}
	// Twice: little comes while a lot is copied.
	for range 2 {
		if err := w.copyWithoutLock(); err != nil {
			return false, nil, err
		}
	}
	if w.dropped == 0 && w.with == nil {
		// A process that did it before may have been killed before this.
		return false, nil, disk.SyncDir(w.box.dir)
	}
	t, err := w.box.Begin(ctx)
	if err != nil {
		return false, nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	again, published, err = w.publish(t)
	return again, t.Warnings(), err
}

func (w *rewriting) copyWithoutLock() error {
	f, err := openState(w.box.fileOf(w.kind))
	if f == nil || err != nil {
		return err
	}
	if w.of == "" {
		w.of = f.Identity()
	}
	if f.Identity() == w.of {
		if err = w.copyOn(f, false); err == nil {
			err = errors.Join(w.tmp.File().Sync(), f.Sync())
		}
	}
	return errors.Join(err, f.Close())
}

// copyOn continues to the file's end. A last line without its newline is being
// written, unless all is set.
func (w *rewriting) copyOn(f *disk.File, all bool) error {
	if f.Info().Size < w.from {
		return nil // publish notices
	}
	to := &disk.Writer{File: w.tmp.File(), Off: w.to}
	read, left, err := lines.Keep(to, io.NewSectionReader(f, w.from, f.Info().Size-w.from), all, w.keep)
	w.from, w.to, w.dropped = w.from+read, to.Off, w.dropped+left
	return err
}

// publish puts the new file in the old one's place.
//
// The commit comes first and raises the file's generation: older records of the
// journal then no longer vouch for their lines, which would otherwise come back.
// For the same reason the old file, and its name, are synced before.
func (w *rewriting) publish(t *Tx) (again, published bool, err error) {
	file := t.store.File(w.kind)
	f, err := file.Existing()
	if err != nil {
		return false, false, err
	}
	if f == nil {
		w.dropped = 0
	} else {
		if _, err := f.Stat(); err != nil { // Begin may have finished a commit
			return false, false, err
		}
		if f.Identity() != w.of || f.Info().Size < w.from {
			return true, false, nil
		}
		if err := w.copyOn(f, true); err != nil {
			return false, false, err
		}
	}
	if w.still != nil {
		if still, err := w.still(); err != nil || !still {
			return true, false, err
		}
	}
	if w.with != nil {
		if err := w.with(t); err != nil {
			return false, false, err
		}
	}
	if w.dropped == 0 {
		return false, false, errors.Join(disk.SyncDir(w.box.dir), t.Commit())
	}
	if err := errors.Join(w.tmp.File().Sync(), f.Sync(), disk.SyncDir(w.box.dir)); err != nil {
		return false, false, err
	}
	t.st.Ends[w.kind].Generation++
	t.dirty = true
	if err := t.Commit(); err != nil {
		return false, false, err
	}
	if err := t.store.StillLocked(); err != nil {
		return false, false, err
	}
	err = errors.Join(file.Close(), disk.Rename(w.copyPath(), file.Path()))
	return false, err == nil, err
}
