package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// verdict is whether the queue file is the one in which the cursor was set.
type verdict struct {
	// replaced is why it is another file, "" if it is the same.
	replaced string
	// edited means that it is the same file, but that waiting lines may have changed.
	edited bool
	// doubtful means that settled lines may have been written again as new work.
	doubtful bool
	// lost holds the entry in flight and the one to be redelivered, if the file no longer has them.
	lost []*Delivery
}

// compare decides whether the queue file is the one in which the cursor was set. Only the bytes before the
// cursor count: if they are the settled ones, it is the same inbox, whatever program wrote it. The exception
// is a file that was rewritten with exactly the same bytes: that is new work.
func (t *Tx) compare() (v verdict, err error) {
	if t.file == nil {
		return v, nil // it may come back
	}
	if v.replaced, err = t.otherBytes(); v.replaced != "" || err != nil {
		return v, err
	}
	if err := t.judgeChange(&v); v.replaced != "" || err != nil {
		return v, err
	}
	for _, d := range t.unsettled() {
		if d.Detached {
			continue
		}
		if there, err := t.holds(d); err != nil {
			return v, err
		} else if !there {
			v.lost = append(v.lost, d)
		}
	}
	if len(v.lost) == 0 || v.edited && t.st.AnchorSum != "" {
		return v, nil
	}
	if v.edited = t.st.AnchorSum != ""; v.edited {
		v.edited, err = t.keepsSettled()
	}
	if !v.edited {
		v.replaced = fmt.Sprintf("the entry %s is no longer there", v.lost[0].label())
	}
	return v, err
}

// judgeChange judges a file in which the anchor's bytes still stand before the cursor.
func (t *Tx) judgeChange(v *verdict) error {
	kind := t.change()
	lacksOwn, err := t.lacksOwn()
	if err != nil || kind == unchanged && !lacksOwn {
		return err
	}
	st, size := &t.st, t.queueSize()
	gone, all := lacksOwn || size < st.SeenSize, true // whether lines that waited are gone, and whether all of them were compared
	if !gone && st.Cursor < st.SeenSize && st.TailSum != "" {
		sum, err := t.hashRange(st.TailStart, st.SeenSize)
		if err != nil {
			return err
		}
		gone, all = sum != st.TailSum, st.TailStart <= st.Cursor
	}
	if kind == grown && !gone {
		return nil
	}
	same, err := t.keepsSettled()
	if err != nil {
		return err
	}
	nothingWaited := st.Cursor == st.SeenSize || st.Cursor == 0 && t.inFlight != nil && t.inFlight.EndOffset == st.SeenSize
	asLong, asOld := size == st.SeenSize, t.queueMark().Mtime == st.SeenMtime
	switch {
	case !same:
		v.replaced = otherSettled(st.Cursor)
	case kind == rewritten && !gone && all:
		v.replaced = "it was rewritten"
	case kind == moved && asLong && nothingWaited && !asOld:
		v.replaced = "it is another file"
	default:
		v.edited = true
		v.doubtful = gone && size == st.Cursor || !gone && asLong && !asOld
	}
	return nil
}

// lacksOwn reports whether the lines that the last commit appended are not in their place. Then somebody
// edited the file, or appended at the same moment.
func (t *Tx) lacksOwn() (bool, error) {
	st := &t.st
	if st.OwnSum == "" || st.Boot != t.boot || t.changedByUs() || t.settling || t.copied() {
		return false, nil
	}
	if t.queueSize() < st.OwnEnd {
		return true, nil
	}
	sum, err := t.hashRange(st.OwnStart, st.OwnEnd)
	return sum != st.OwnSum, err
}

// changedByUs reports whether this process has just completed, or is about to complete, an earlier commit's
// work on the queue file. Its inode then shows heartbeat's own change.
func (t *Tx) changedByUs() bool {
	return t.store.Changed() || t.viewing() && t.st.Punching != 0 // see finishHole
}

// change is what happened to the queue file since the last commit, as its inode and the directory show it.
type change int

const (
	unchanged change = iota
	grown
	shorter
	moved     // another file took its place
	rewritten // written to, but not longer than before
)

// change returns whether and how somebody wrote or replaced the file. A file counts as unchanged if the whole directory
// was copied (the lock file is then another file, or has another time), if it was only touched, or if a power loss
// explains that it is shorter or older.
func (t *Tx) change() change {
	st, info, rebooted := &t.st, t.file.Info(), t.st.Boot != t.boot
	switch {
	case st.SeenFile == "" || t.copied() || t.changedByUs():
		return unchanged
	case t.file.Identity() != st.SeenFile:
		return moved
	case info.Size > st.SeenSize:
		return grown
	case rebooted && (info.Size < st.SeenSize || info.Mtime < st.SeenMtime):
		return unchanged
	case info.Size < st.SeenSize:
		return shorter
	case info.Mtime == st.SeenMtime:
		if same, known := t.samePlace(); st.SeenYoung && known && !same {
			return rewritten
		}
		return unchanged
	case t.touchedOnly(info):
		t.notice() // since reading the file changes its access time
		return unchanged
	}
	return rewritten
}

// awaitWriter returns once the queue file has stood still for 0.2 s, but after no more than 2 s (0.4 s in a view). An
// editor that saves in place empties the file first, and a write sets the time first and the length last. Nobody can
// set the inode's change time: if that is old, the file has stood still, as an emptied inbox without a hook does at
// each read.
func (t *Tx) awaitWriter() {
	most := 100
	if t.viewing() { // a view starts over after each commit, and decides nothing
		most = 20
	}
	if info, err := disk.StatFile(t.box.path); err == nil && time.Since(time.Unix(0, info.Ctime)) > longStill {
		return
	}
	seen := sightOf(t.box.path)
	for still, polls := 0, 0; still < 10 && polls < most; polls++ {
		restBetweenPolls()
		still++
		if now := sightOf(t.box.path); now != seen {
			seen, still = now, 0
		}
	}
}

// copied reports whether the directory is not that of the last commit, or was restored from a copy.
func (t *Tx) copied() bool {
	return t.st.Lock != t.lockID || t.st.LockMtime != 0 && t.st.LockMtime != t.lockMtime
}

// samePlace reports whether the file's bytes are still at the same place on the disk, which changes when the file is
// truncated and filled again. known is false if the file system does not tell.
func (t *Tx) samePlace() (same, known bool) {
	was, is := t.st.SeenPlace, t.file.Place()
	return was == is, was != "" && is != ""
}

// touchedOnly recognises touch(1), which sets the times of access and modification to the same value. So does a write
// that is read within the same clock tick, but it also sets the inode's change time to that value. If neither that nor
// the place on the disk tells the two apart, the change counts as a write if nothing waits: it is better that a prompt
// comes twice than that it never comes.
func (t *Tx) touchedOnly(info disk.Info) bool {
	if info.Atime != info.Mtime {
		return false
	}
	if same, known := t.samePlace(); known {
		return same
	}
	return info.Ctime != info.Mtime || t.st.Cursor < t.st.SeenSize
}

func otherSettled(cursor int64) string {
	return fmt.Sprintf("what is before the cursor %d is not what was settled", cursor)
}

// otherBytes describes how the bytes before the cursor differ from what was settled, "" if they do not.
func (t *Tx) otherBytes() (string, error) {
	cur, size := t.st.Cursor, t.queueSize()
	switch {
	case cur > size:
		return fmt.Sprintf("the cursor %d is beyond the end %d", cur, size), nil
	case cur == 0:
		return "", nil
	case t.st.AnchorSum != "":
		sum, err := t.hashRange(t.st.AnchorStart, cur)
		if err != nil || sum == t.st.AnchorSum {
			return "", err
		}
		return otherSettled(cur), nil
	case t.moved():
		return "it is another file", nil
	case cur == size:
		return "", nil
	}
	around := make([]byte, 3)
	n, err := t.file.ReadAt(around, cur-1)
	if err != nil && err != io.EOF {
		return "", inReading(err)
	}
	if behind := string(around[1:n]); around[0] == '\n' || strings.HasPrefix(behind, "\n") || behind == "\r\n" {
		return "", nil
	}
	return fmt.Sprintf("the cursor %d is in the middle of a line", cur), nil
}

// moved reports whether another file took the queue file's place.
func (t *Tx) moved() bool {
	return t.st.SeenFile != "" && !t.copied() && t.file.Identity() != t.st.SeenFile
}

// holds reports whether the queue file still has d's line at d's offset.
func (t *Tx) holds(d *Delivery) (bool, error) {
	if t.file == nil || d.EndOffset > t.queueSize() {
		return false, nil
	}
	if d.TextFile != "" {
		l, err := readLine(t.file, d.StartOffset, t.queueSize(), longMost)
		if err != nil && err != io.EOF {
			return false, inReading(err)
		}
		if !l.tooLong {
			l.id = entryID(l.raw)
		}
		return err == nil && l.end == d.EndOffset && l.id == d.EntryID, nil
	}
	b := make([]byte, d.EndOffset-d.StartOffset)
	if _, err := t.file.ReadAt(b, d.StartOffset); err != nil && err != io.EOF {
		return false, inReading(err)
	}
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	if d.RawLine.Base64 == "" {
		b = lines.Valid(b)
	}
	return bytes.Equal(b, d.exact()), nil
}

// recognise compares the queue file with the state, and starts over if it is another file.
func (t *Tx) recognise() error {
	if t.copied() {
		t.st.SyncedTo = 0
	}
	v, err := t.compare()
	if errors.Is(err, io.EOF) || v.replaced != "" || v.edited { // or it was truncated during the comparison
		t.awaitWriter()
		if err = t.openFile(); err == nil {
			v, err = t.compare()
		}
	}
	unread := t.st.Cursor == 0 && t.inFlight == nil && t.redeliver == nil
	switch {
	case err != nil:
	case v.replaced != "" && !unread:
		t.replacedWhy = v.replaced
		t.warn("inbox %s was truncated or replaced (%s): reading it from its start", t.box.path, v.replaced)
		t.startOver(v.replaced)
		t.st.Replaced = t.encoded(Replacement{At: t.box.utcNow(), Why: v.replaced})
		t.addEvent(Event{Event: EventReplaced, Reason: v.replaced})
	case v.replaced != "" || v.edited:
		if err = t.keepEdited(v); err == nil && unread {
			t.readAgain("the inbox was replaced before anything of it was read", 0, t.st.SeenSize)
		}
	}
	if err != nil {
		return err
	}
	return t.detectOlder()
}

// Replacement records that the queue file was truncated or replaced.
type Replacement struct {
	At  time.Time `json:"at"`
	Why string    `json:"why"`
}

// LastReplaced returns the last time that a commit started over in another file, zero for never.
func (v *View) LastReplaced() Replacement { return kept[Replacement](v.tx.st.Replaced) }

// keepEdited continues in an edited file. The journal no longer vouches for the lines that it appended there,
// so the file is synced.
func (t *Tx) keepEdited(v verdict) error {
	if !t.viewing() {
		if err := errors.Join(t.file.Sync(), disk.SyncDir(t.box.dir)); err != nil {
			return fmt.Errorf("continue in the inbox %s, which somebody edited: %w", t.box.path, err)
		}
	}
	t.st.SyncedTo, t.st.Reached = t.queueSize(), nil
	t.st.QueueGeneration++
	t.notice()
	if v.doubtful && t.st.Cursor > 0 {
		t.warn("inbox %s was rewritten, and begins with lines that were settled: they are not delivered again unless you remove %s", t.box.path, t.store.Cursor().Path())
	}
	if len(v.lost) > 0 {
		t.warn("the entry that was handed over is no longer in its place in the inbox %s: it is kept apart from the file, and the line there is another entry", t.box.path)
	}
	t.detach(v.lost...)
	if err := t.keepCanceled(); err != nil {
		return err
	}
	for _, d := range v.lost {
		if err := t.passElsewhere(d); err != nil {
			return err
		}
	}
	return nil
}

// passElsewhere notes where an edit moved the line of a detached entry, so that the cursor passes the line and the work
// is not done twice. It skips lines without an id, which may be other entries with the same text.
func (t *Tx) passElsewhere(d *Delivery) (failed error) {
	err := t.scanQueue(t.st.Cursor, d.ID(), func(_ string, p place, _ bool) bool {
		if p.entryID == d.EntryID {
			failed = t.noteCanceled(p.start, p.end)
		}
		return p.entryID != d.EntryID
	})
	return errors.Join(err, failed)
}

// startOver reads the queue file from its start, because it is another file.
func (t *Tx) startOver(why string) {
	t.st.Cursor, t.st.SyncedTo, t.st.SeenFile, t.dirty = 0, 0, "", true
	t.st.AnchorStart, t.st.AnchorSum, t.st.Punching, t.st.Reached = 0, "", 0, nil
	t.forgetDigest()
	t.canceled = nil
	t.st.QueueGeneration++
	t.detach(t.inFlight, t.redeliver)
	t.readAgain(fmt.Sprintf("the inbox was truncated or replaced (%s), and is read from its start", why), 0, t.st.SeenSize)
}

// noticeGone starts over before a queue file is created: the previous one will not come back.
func (t *Tx) noticeGone() {
	if t.file == nil && (t.st.Cursor > 0 || t.st.SeenFile != "") {
		t.startOver("it was removed")
	}
}

// detach separates the entry in flight, or the one to be redelivered, from a queue file that no longer has it.
func (t *Tx) detach(lost ...*Delivery) {
	for _, d := range lost {
		if d == nil || d.Detached {
			continue
		}
		apart, set := *d, t.setRedeliver
		if d == t.inFlight {
			set = t.setInFlight
		}
		apart.Detached = true
		set(&apart)
	}
}
