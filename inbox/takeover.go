package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
	"heartbeat/internal/machine"
)

// takeOver adopts what another program, such as heartbeat-rs or a launcher that resets the cursor, did to the
// documented files since they last followed the journal. A file with invalid content is an error, and stays as it is.
func (t *Tx) takeOver() error {
	cursor, err := t.readCursor()
	if err != nil {
		return err
	}
	if t.responded, err = t.store.Responded(); err != nil {
		return err
	}
	if err := t.takeOverInFlight(cursor); err != nil {
		return err
	}
	if cursor != t.st.Cursor {
		if err := t.setForeignCursor(cursor); err != nil {
			return err
		}
	}
	if d := t.inFlight; d != nil && !d.Detached && t.st.Cursor >= d.EndOffset && d.EndOffset > d.StartOffset {
		t.stale = d // the cursor has passed it
		t.setInFlight(nil)
	}
	if t.responded && t.inFlight == nil {
		t.dirty = true // the next commit removes it
	}
	return nil
}

// setForeignCursor continues where another program put the cursor. If an entry in flight lies further on,
// settling it would move the cursor past lines that now wait, so the entry is detached. An entry to be
// redelivered comes when the cursor reaches it; if the cursor never does, the entry is detached too.
func (t *Tx) setForeignCursor(cursor int64) error {
	if was := t.st.Cursor; t.st.Seq > 0 && cursor < was {
		why := fmt.Sprintf("%s was set back from %d to %d: what lies between is delivered again, as whoever did it asked", t.store.Cursor().Path(), was, cursor)
		t.noteByHand(Event{Event: EventSetBack, Start: cursor}, why)
	}
	t.st.Cursor, t.st.AnchorStart, t.st.AnchorSum, t.dirty = cursor, 0, "", true
	t.forgetDigest()
	if d := t.inFlight; d != nil && t.st.Seq > 0 && cursor < d.StartOffset {
		t.detach(d, t.redeliver)
	}
	r := t.redeliver
	if r == nil || r.Detached || r.StartOffset == cursor {
		return nil
	}
	comes, err := t.holds(r)
	if err != nil {
		return err
	}
	if comes && cursor < r.StartOffset {
		t.setRedeliver(nil)
		return nil
	}
	t.detach(r)
	return nil
}

// The greatest lengths, in bytes, of .inbox-offset and .in-flight, which other programs write too. Texts of
// over 2 MiB are in files of their own.
const (
	MaxOffsetFile   = 4 << 10
	MaxInFlightFile = 32 << 20
)

func (t *Tx) takeOverInFlight(cursor int64) error {
	path := t.store.InFlight().Path()
	found, err := t.store.InFlight().Content(MaxInFlightFile)
	if err != nil {
		return err
	}
	switch {
	case found == nil:
		return t.inFlightRemoved(cursor)
	case t.inFlight != nil && bytes.Equal(bytes.TrimRight(found, " \n"), t.st.InFlight):
		return nil
	}
	d, err := parseDelivery(found)
	if err != nil {
		return fmt.Errorf("read %s: %w: %w: nothing was changed: mend it, or move it away to have the entry delivered again", path, ErrCorrupt, err)
	}
	if d.Inbox != "" && d.Inbox != t.box.name {
		return fmt.Errorf("read %s: it is an entry of the inbox %s, not of %s: give each inbox a directory of its own: %w", path, d.Inbox, t.box.name, ErrOtherInbox)
	}
	// A file from another program does not prove that the inbox was replaced.
	if fits, err := t.holds(d); err != nil {
		return err
	} else if !fits {
		t.warn("%s names the entry %s at [%d,%d), which the inbox does not have there: it is kept apart from the file", path, d.label(), d.StartOffset, d.EndOffset)
		d.Detached = true
	}
	t.named = d.First()
	// Whether that delivery's text went out is still known, whatever else was edited.
	was := t.inFlight
	t.st.Handed = t.st.Handed && was != nil && was.EntryID == d.EntryID && bytes.Equal(was.Evidence, d.Evidence)
	if d.DeliveredSeq >= t.Seq() {
		d.DeliveredSeq = 0 // a number of a journal that is gone
	}
	// Nor does such a file prove what was spent, or what the agent said.
	d.FirstSeq, d.Spent = 0, ""
	d.Verdict, d.Progress = nil, nil
	if was != nil && was.EntryID == d.EntryID && was.DeliveredSeq == d.DeliveredSeq {
		d.FirstSeq, d.Spent = was.FirstSeq, was.Spent
		d.Verdict, d.Progress = was.Verdict, was.Progress
	}
	t.setInFlight(d)
	return nil
}

// inFlightRemoved handles an entry in flight whose file somebody removed. A program that settles the entry also moves
// the cursor, and one that gives it back (heartbeat-rs's recover) also removes .responded. The missing file alone
// proves nothing, and the entry stays in flight because somebody may be working on it.
func (t *Tx) inFlightRemoved(cursor int64) error {
	d := t.inFlight
	switch {
	case d == nil:
		return nil
	case !d.Detached && cursor >= d.EndOffset:
		t.setInFlight(nil)
		return nil
	case !t.responded:
		return t.GiveBack("its "+journal.InFlightName+" and "+journal.RespondedName+" were removed", true)
	}
	why := fmt.Sprintf("%s was removed, and written again: the entry %s stays in flight until its session or `heartbeat recover` settles it", t.store.InFlight().Path(), d.label())
	t.warn("%s", why)
	t.noticed, t.dirty, t.justFound = true, true, true
	t.noteByHand(eventOf(d, EventRemoved), why)
	return t.failed
}

// readCursor reads .inbox-offset; a missing file means 0.
func (t *Tx) readCursor() (int64, error) {
	path := t.store.Cursor().Path()
	text, err := t.store.Cursor().Content(MaxOffsetFile)
	if err != nil || text == nil {
		return 0, err
	}
	cursor, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 63)
	if err != nil {
		if len(text) > 40 {
			text = append(text[:40], "..."...)
		}
		return 0, lines.Corrupt("read %s: %q is no byte offset: nothing was changed: put the offset to read from into it, or remove it to read from the start",
			path, text)
	}
	return int64(cursor), nil
}

// foreignSuffix ends the name of a state file that was moved away because it was not written here.
const foreignSuffix = ".foreign"

// writtenHere reports whether the journal was written in this very directory. A repository can bring any file, but
// cannot choose a file's identity or the nanoseconds of its time. A copy that keeps the times counts as written here.
//
// Without a journal, only the inbox and the files of heartbeat-rs are known.
func (t *Tx) writtenHere() bool {
	st := &t.st
	if machine.TestOnlyTrustAll || st.Lock != "" && st.Lock == t.lockID || exact(st.LockMtime) && st.LockMtime == t.lockMtime {
		return true
	}
	if t.file == nil || st.SeenFile == "" {
		return false
	}
	return st.SeenFile == t.file.Identity() || exact(st.SeenMtime) && t.queueMark() == (Mark{Size: st.SeenSize, Mtime: st.SeenMtime})
}

// exact rules out times in whole seconds, which archives keep and somebody can choose.
func exact(ns int64) bool { return ns%int64(time.Second) != 0 }

// moveForeignAside moves away the files that only heartbeat writes if they were not written here, and their
// content does not count. With [Options].Adopt they are accepted, including those moved away before.
func (t *Tx) moveForeignAside() error {
	if t.box.opts.Adopt {
		return t.adoptForeign()
	}
	if t.here { // as it was before this transaction commits, which ties the state to this place
		return nil
	}
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
		t.warn("%s in %s: it is ignored, since it was not written here, but brought by a copy or a repository: "+
			"if it is yours, `heartbeat recover --adopt` takes it back", strings.Join(moved, ", "), t.box.dir)
	}
	return nil
}

// moveAway renames a file and returns its new name, "" if the file is empty.
func (t *Tx) moveAway(kind journal.Kind) (string, error) {
	name, file := kind.Name(), t.store.File(kind)
	f, err := file.Existing()
	if err != nil || f == nil || f.Info().Size == 0 {
		return "", err
	}
	before, err := t.box.broughtBack(name)
	if err != nil {
		return "", err
	}
	to := foreignName(name, len(before)+1)
	if err := file.Close(); err != nil {
		return "", err
	}
	return to, disk.Rename(t.box.beside(name), t.box.beside(to))
}

// adoptForeign accepts the present files, and puts those that were moved away back in front of the lines that
// came since.
func (t *Tx) adoptForeign() error {
	t.dirty = t.dirty || !t.here // the commit ties the state to this place
	for _, kind := range journal.Ours() {
		brought, err := t.box.broughtBack(kind.Name())
		if err == nil && len(brought) > 0 {
			err = t.putBack(kind, brought)
		}
		if err != nil {
			return fmt.Errorf("adopt %s: %w", t.box.fileOf(kind), err)
		}
	}
	return t.Commit()
}

// foreignName returns the n-th name for a file that is moved away.
func foreignName(name string, n int) string {
	if n == 1 {
		return name + foreignSuffix
	}
	return name + foreignSuffix + "-" + strconv.Itoa(n)
}

// broughtBack returns the files that were moved away, oldest first.
func (b *Inbox) broughtBack(name string) (all []string, err error) {
	for n := 1; ; n++ {
		from := foreignName(name, n)
		there, err := disk.Exists(b.beside(from))
		if err != nil || !there {
			return all, err
		}
		all = append(all, from)
	}
}

// putBack publishes the whole file before it removes the parts. After a kill in between, the file is found to
// begin with the parts already.
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
		now = append(before, now...)
	}
	t.st.Ends[kind].Generation++ // the journal's offsets no longer hold
	t.dirty = true
	if err := t.Commit(); err != nil {
		return err
	}
	if err := errors.Join(file.Close(), disk.Publish(file.Path(), now, true)); err != nil {
		return err
	}
	t.st.Ends[kind].At, t.dirty = int64(len(now)), true // `costs` reads up to there
	for _, from := range slices.Backward(brought) {     // after a kill, the remaining parts begin with the first
		if err := disk.Remove(t.box.beside(from)); err != nil {
			return err
		}
	}
	t.warn("%s was taken back from %s", kind.Name(), strings.Join(brought, ", "))
	return nil
}

// MoveForeignAside moves away state files that were not written here, as [Inbox.Begin] does, for callers that
// only read. It returns warnings for a person.
func (b *Inbox) MoveForeignAside(ctx context.Context) (warnings []string, err error) {
	v, err := b.View()
	if err != nil {
		return nil, nil // the caller's own view reports it
	}
	known := v.tx.writtenHere()
	if err := v.Close(); err != nil || known {
		return nil, err
	}
	filled := func(k journal.Kind) bool {
		info, _ := disk.StatName(b.fileOf(k)) // zero if the file does not exist
		return info.Size > 0
	}
	if !slices.ContainsFunc(journal.Ours(), filled) {
		return nil, nil // there is nothing to move away
	}
	t, err := b.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("the state in %s was not written here, and cannot be moved away: %w", b.dir, err)
	}
	return t.Warnings(), t.Close()
}

// StateNames returns the names of all files beside an inbox.
func StateNames() []string { return journal.Names() }

// Named returns the base name of the inbox whose state a directory holds, "" if it holds none. It takes no
// lock. The name comes from a file that others may have written: it names a file in that directory, and
// nothing else is known of it.
func Named(dir string) (name string, err error) {
	store := journal.Open(filepath.Join(dir, "inbox"), nil, func(string, ...any) {})
	defer func() { err = errors.Join(err, store.Close()) }()
	l, err := store.Load()
	if err != nil {
		return "", fmt.Errorf("find the inbox of %s: %w", dir, err)
	}
	name = l.Record.Inbox
	if name != "" && name != filepath.Base(name) || slices.Contains(journal.Names(), name) {
		return "", fmt.Errorf("find the inbox of %s: its journal names %q: %w", dir, name, ErrCorrupt)
	}
	return name, nil
}
