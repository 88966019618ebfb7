package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"heartbeat/internal/disk"
)

// follow brings the documented files to what the last commit says. Only the
// dead letters are synced: the journal can make the others good until it is
// trimmed, and trimming syncs them.
func (t *Tx) follow() error {
	t.behind, t.followed = true, false
	if err := t.writeAppends(t.st.Appends, true); err != nil {
		return err
	}
	t.behind = false
	err := t.show()
	t.followed = err == nil
	return err
}

// catchUp puts the lines of the last commit where it said, if that failed before:
// once another record follows, that one alone is made good.
func (t *Tx) catchUp() error {
	if !t.behind {
		return nil
	}
	if err := t.stillLocked(); err != nil {
		return err
	}
	if err := t.writeAppends(t.st.Appends, false); err != nil {
		return fmt.Errorf("commit: the files in %s do not show the last commit yet: %w", t.box.dir, err)
	}
	t.behind = false
	return nil
}

// writeAppends puts the lines of one commit where it said, however much of them
// is there already, which is nothing where the commit is fresh.
func (t *Tx) writeAppends(all []appendRecord, fresh bool) error {
	var settled []string // the scheduled entries that were, by entry_id
	of := map[string][]appendRecord{}
	for _, a := range all {
		of[a.File] = append(of[a.File], a)
		if a.File == queueName && a.Promoted {
			settled = append(settled, entryID(a.content()))
		} else if a.Unschedule != "" {
			settled = append(settled, a.Unschedule)
		}
	}
	for _, name := range []string{resultsName, eventsName, deadLetterName, scheduledName} {
		if lines := of[name]; len(lines) > 0 {
			if err := t.writeLines(lines); err != nil {
				return err
			}
		}
	}
	if queue := of[queueName]; len(queue) > 0 {
		if err := t.writeQueue(queue, fresh); err != nil {
			return err
		}
	}
	if len(settled) > 0 {
		return t.unschedule(settled)
	}
	return nil
}

// show writes the cursor and what is in flight, and notes that it did. The
// cursor comes first: in between, an entry in flight that lies before the
// cursor reads as answered, which it is.
func (t *Tx) show() error {
	cursor := strconv.AppendInt(nil, t.st.Cursor, 10)
	if err := t.cursorFile.overwrite(cursor, 0); err != nil {
		return err
	}
	if err := t.showInFlight(); err != nil {
		return err
	}
	if err := t.journal.followed(followMark{Followed: t.st.Seq, Boot: t.boot}); err != nil {
		return err
	}
	return t.trim()
}

func (t *Tx) showInFlight() error {
	responded := t.box.file(respondedName)
	if t.inFlight == nil {
		t.signed = false
		return errors.Join(t.inFlightFile.remove(), disk.Remove(responded))
	}
	if err := t.inFlightFile.overwrite(t.st.InFlight, ' '); err != nil {
		return err
	}
	if t.signed {
		return nil
	}
	t.signed = true
	return disk.Create(responded)
}

// overwrite replaces a small file's content in place, which costs a file system
// far less than a new file and a rename, where a reader cannot see the
// difference: the new content is at least as long, or pad (if not 0) makes it
// so. A kill amid the write is made good from the journal.
func (s *stateFile) overwrite(content []byte, pad byte) error {
	const maxPad = 64 << 10
	f, _, err := s.made()
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	short := info.Size - int64(len(content))
	if short > 0 && (pad == 0 || short > maxPad) {
		return errors.Join(s.close(), disk.Publish(s.path, content, false))
	}
	if short > 0 {
		content = append(bytes.Clone(content), bytes.Repeat([]byte{pad}, int(short))...)
	}
	return f.WriteAt(content, 0)
}

// writeLines writes the lines of one file: all at once where none is there yet.
func (t *Tx) writeLines(lines []appendRecord) error {
	name := lines[0].File
	f, _, err := t.appendFile(name).made()
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if all, follow := joined(lines); follow && info.Size == lines[0].At {
		err = f.WriteAt(all, info.Size)
	} else {
		err = writeMissing(f, lines)
	}
	if err != nil || !syncedOnFollow(name) {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if lines[0].At == 0 || info.Size == 0 {
		return disk.SyncDir(t.box.dir)
	}
	return nil
}

// joined is the bytes of lines that follow one another, if they do.
func joined(lines []appendRecord) (all []byte, follow bool) {
	if len(lines) == 1 {
		return lines[0].bytes(), true
	}
	for _, a := range lines {
		if a.At != lines[0].At+int64(len(all)) {
			return nil, false
		}
		all = append(all, a.bytes()...)
	}
	return all, true
}

// writeMissing writes what a file lacks of each line.
func writeMissing(f *disk.File, lines []appendRecord) error {
	for _, a := range lines {
		rest, at, err := missing(f, a)
		if err == nil && len(rest) > 0 {
			err = f.WriteAt(rest, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// replay makes good what a kill or a power loss kept from following the last
// commit. After a power loss any result since the journal was last trimmed may
// be missing; in one boot only what the last commit was to add, and what else is
// missing somebody has taken away. A dead letter is synced before the follow mark is
// written, so with that it is where it was, or an operator has taken it away.
//
// A kill may have come before the commit's own sync, so that comes first: the
// files must not tell of what a power loss would take back.
func (t *Tx) replay(marked bool) error {
	last := t.st
	if err := t.journal.settle(); err != nil {
		return err
	}
	err := t.journal.each(t.boot, func(s *state, followed bool) error {
		if last.Boot == t.boot && s.Seq < last.Seq {
			return nil // a record is only followed by another once the files show it
		}
		return t.writeAppends(slices.DeleteFunc(s.Appends, func(a appendRecord) bool {
			return !last.replays(a, s.Seq, t.inFlight) || syncedOnFollow(a.File) && marked || mayBeRotated(a.File) && followed
		}), false)
	})
	if err == nil {
		err = t.show()
	}
	if err == nil && marked { // a new boot: the next one need not do this again
		err = t.shorten()
	}
	if err != nil {
		return fmt.Errorf("finish the last commit in %s: %w", t.box.dir, err)
	}
	return nil
}

// replays reports whether a line of the record with that number must be made
// good under the last record, s.
func (s *state) replays(a appendRecord, seq int64, inFlight *Delivery) bool {
	if a.File == queueName {
		return s.replaysQueue(a, inFlight)
	}
	if _, generation := s.appendPoint(a.File); a.Generation != *generation {
		return false
	}
	return !syncedOnFollow(a.File) || seq == s.Seq
}

// trim shortens the journal once its records are many.
func (t *Tx) trim() error {
	if t.journal.end < trimSize {
		return nil
	}
	return t.shorten()
}

// syncFollowers makes durable what only the journal vouches for until then.
func (t *Tx) syncFollowers() error {
	for _, file := range []*stateFile{&t.results, &t.events} {
		f, err := file.existing()
		if err == nil && f != nil {
			err = f.Sync()
		}
		if err != nil {
			return err
		}
	}
	if err := t.syncFile(); err != nil {
		return err
	}
	return disk.SyncDir(t.box.dir)
}

// shorten takes away the journal's records before the last. What they alone
// vouch for is synced first.
func (t *Tx) shorten() error {
	if err := t.syncFollowers(); err != nil {
		return err
	}
	st := t.st
	st.Appends = nil
	path := t.box.file(journalName)
	record := sumLine(st.encode())
	if err := t.stillLocked(); err != nil { // others' commits would go with the old one
		return err
	}
	if err := disk.Publish(path, fill(record), true); err != nil {
		return err
	}
	if err := t.journal.close(); err != nil {
		return err
	}
	j, err := openJournal(path, disk.OpenExisting)
	if err != nil {
		t.journal = &journal{}
		return err
	}
	t.journal = j
	t.journal.end = int64(len(record))
	// Not published along with the record: a kill before the directory's sync
	// must leave a journal that the next transaction settles first.
	return t.journal.followed(followMark{Followed: st.Seq, Boot: t.boot})
}
