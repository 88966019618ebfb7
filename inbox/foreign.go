package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
)

// foreignSuffix ends the name of a state file that was moved away because it was
// not written here.
const foreignSuffix = ".foreign"

// TestOnlyTrustAll makes every state file count as written here. Only tests set
// it: their files are made by hand, or by a model of a power loss.
var TestOnlyTrustAll bool

// writtenHere reports whether the journal was written in this very place. A repository
// can bring any file, but it cannot choose what the file system gives a file: its
// identity and the nanosecond of its time. A copy that keeps the times counts
// too.
//
// Without a journal, only the inbox and the files of heartbeat-rs are known.
func (t *Tx) writtenHere() bool {
	st := &t.st
	if TestOnlyTrustAll || st.Lock != "" && st.Lock == t.lockID || exact(st.LockMtime) && st.LockMtime == t.lockMtime {
		return true
	}
	if t.file == nil || st.SeenFile == "" {
		return false
	}
	return st.SeenFile == t.file.Identity() || exact(st.SeenMtime) && t.queueMark() == (Mark{Size: st.SeenSize, Mtime: st.SeenMtime})
}

// exact rules out the times of archives that keep whole seconds, which somebody
// can choose.
func exact(ns int64) bool { return ns%int64(time.Second) != 0 }

// moveForeignAside moves away the files that only heartbeat writes if they were not
// written here: nothing is lost, and nothing in them counts. With [Options].Adopt
// they are accepted, including those that were moved away before.
func (t *Tx) moveForeignAside() error {
	if t.box.opts.Adopt {
		return t.adoptForeign()
	}
	if t.here { // before any commit of this transaction, which ties it to this place
		return nil
	}
	t.st.Account, t.account = nil, nil // what was spent elsewhere counts there
	var moved []string
	for _, kind := range journal.Ours() {
		to, err := t.moveAway(kind)
		if err != nil {
			return fmt.Errorf("move away what was not written here: %w", err)
		}
		if to != "" {
			moved = append(moved, to)
		}
	}
	if len(moved) > 0 {
		t.st.Scheduled = nil
		t.warn("%s in %s: it is ignored, since it was not written here, but brought by a copy or a repository: "+
			"if it is yours, `heartbeat recover --adopt` takes it back", strings.Join(moved, ", "), t.box.dir)
	}
	return nil
}

// moveAway renames a file and returns its new name, "" if there is nothing in it.
func (t *Tx) moveAway(kind journal.Kind) (string, error) {
	name, file := kind.Name(), t.store.File(kind)
	f, err := file.Existing()
	if err != nil || f == nil || f.Info().Size == 0 {
		return "", err
	}
	to := name + foreignSuffix
	for n := 2; ; n++ {
		there, err := disk.Exists(t.box.beside(to))
		if err != nil {
			return "", err
		}
		if !there {
			break
		}
		to = name + foreignSuffix + "-" + strconv.Itoa(n)
	}
	if err := file.Close(); err != nil {
		return "", err
	}
	return to, disk.Rename(t.box.beside(name), t.box.beside(to))
}

// adoptForeign accepts the files that are there, and puts those that were moved away
// back in front of what has come since.
func (t *Tx) adoptForeign() error {
	t.dirty = t.dirty || !t.here // the commit ties it to this place
	for _, kind := range journal.Ours() {
		brought, err := t.box.broughtBack(kind.Name())
		if err == nil && len(brought) > 0 {
			t.dirty = true
			err = t.putBack(kind, brought)
		}
		if err != nil {
			return fmt.Errorf("adopt %s: %w", t.box.fileOf(kind), err)
		}
	}
	return t.Commit()
}

// broughtBack are the files that were moved away, the oldest first.
func (b *Inbox) broughtBack(name string) (all []string, err error) {
	for n := 1; ; n++ {
		from := name + foreignSuffix
		if n > 1 {
			from += "-" + strconv.Itoa(n)
		}
		there, err := disk.Exists(b.beside(from))
		if err != nil || !there {
			return all, err
		}
		all = append(all, from)
	}
}

// putBack publishes the whole before it removes the parts: after a kill in
// between, the file is found to begin with them already.
func (t *Tx) putBack(kind journal.Kind, brought []string) error {
	var before []byte
	for _, from := range brought {
		part, err := disk.ReadState(t.box.beside(from), disk.MaxWhole)
		if err != nil {
			return err
		}
		if before = append(before, part...); len(part) > 0 && part[len(part)-1] != '\n' {
			before = append(before, '\n')
		}
	}
	file := t.store.File(kind)
	now, err := file.Content(disk.MaxWhole)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(now, before) {
		t.st.Ends[kind].Generation++ // the journal's offsets are no longer right
		if err := t.Commit(); err != nil {
			return err
		}
		t.dirty = true
		if err := errors.Join(file.Close(), disk.Publish(file.Path(), append(before, now...), true)); err != nil {
			return err
		}
		t.st.Scheduled = nil
	}
	for _, from := range slices.Backward(brought) { // after a kill, what is left starts with the first
		if err := disk.Remove(t.box.beside(from)); err != nil {
			return err
		}
	}
	t.warn("%s was taken back from %s", kind.Name(), strings.Join(brought, ", "))
	return nil
}
