package inbox

import (
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
)

// anchorSpan is how many bytes before the cursor are remembered at least, and
// tailSpan how many of what waits at most.
const (
	anchorSpan = 4 << 10
	tailSpan   = 16 << 10
)

// remember notes in the next record what the queue file will be recognised by.
func (t *Tx) remember(next *journal.Record) {
	if t.reanchor {
		t.anchor(next)
	}
	t.extendDigest(next)
	if t.file == nil {
		return
	}
	now := t.queueMark()
	next.SeenFile, next.SeenPlace, next.SeenYoung = t.file.Identity(), t.file.Place(), disk.Young(now.Mtime)
	t.rememberTail(next, now)
	next.SeenSize, next.SeenMtime = now.Size, now.Mtime
}

// anchor notes what the file is recognised by before the cursor: a hash of the
// bytes there, of the whole last line at least.
func (t *Tx) anchor(next *journal.Record) {
	next.AnchorStart, next.AnchorSum = 0, ""
	if t.file == nil || next.Cursor == 0 {
		return
	}
	start := max(0, min(t.lastLine, next.Cursor-anchorSpan))
	sum, err := t.hashRange(start, next.Cursor)
	if err != nil {
		return // the file shrank just now: the next transaction notices
	}
	next.AnchorStart, next.AnchorSum = start, sum
}

// rememberTail hashes the last of what waits, which tells an edit from a file
// that was filled again.
func (t *Tx) rememberTail(next *journal.Record, now Mark) {
	start := max(next.Cursor, now.Size-tailSpan)
	if next.TailSum != "" && next.TailStart == start && (Mark{next.SeenSize, next.SeenMtime}) == now {
		return
	}
	next.TailStart, next.TailSum = 0, ""
	if start >= now.Size {
		return
	}
	sum, err := t.hashRange(start, now.Size)
	if err != nil {
		return // as above
	}
	next.TailStart, next.TailSum = start, sum
}

// rememberOwn hashes the last of the lines that the commit itself appends to the
// queue file: nothing else has looked at the file with those yet.
func rememberOwn(next *journal.Record) {
	next.OwnStart, next.OwnEnd, next.OwnSum = 0, 0, ""
	var own []byte
	for _, a := range next.Appends {
		if a.Kind == journal.Queue {
			own = append(own, a.Bytes()...)
			next.OwnEnd = a.At + int64(len(a.Bytes()))
		}
	}
	if len(own) == 0 {
		return
	}
	own = own[max(0, len(own)-tailSpan):]
	next.OwnStart, next.OwnSum = next.OwnEnd-int64(len(own)), entryID(own)
}

// lacksOwn reports whether the lines that the last commit appended are not where
// they should be. Then somebody edited the file, or appended at the same moment.
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

// changedByUs reports whether an earlier commit's work on the queue file was done
// just now, or is about to be: its inode then tells of our own change.
func (t *Tx) changedByUs() bool {
	return t.store.Changed() || t.viewing() && t.st.Punching != 0 // see finishHole
}

// tail is what became of the entries that waited at the last commit.
type tail int

const (
	tailSame    tail = iota // all of them are there, and were compared
	tailAlike               // those that were compared are there
	tailChanged             // some are no longer there
)

// tail compares what is there now with what waited.
func (t *Tx) tail() (tail, error) {
	st := &t.st
	switch {
	case t.queueSize() < st.SeenSize:
		return tailChanged, nil
	case st.Cursor >= st.SeenSize:
		return tailSame, nil
	case st.TailSum == "": // a journal without it
		return tailSame, nil
	}
	sum, err := t.hashRange(st.TailStart, st.SeenSize)
	switch {
	case err != nil:
		return tailChanged, err
	case sum != st.TailSum:
		return tailChanged, nil
	case st.TailStart > st.Cursor:
		return tailAlike, nil
	}
	return tailSame, nil
}

// change is what happened to the queue file since the last commit, as far as its
// inode and the directory tell.
type change int

const (
	unchanged change = iota
	grown
	shorter
	moved     // another file is in its place
	rewritten // written to, and no longer than before
)

// change tells a file that somebody wrote or replaced from one that is as it was.
// A file counts as unchanged if the whole directory was copied (the lock file is
// then another one, or has another time), if it was only touched, and if it is
// shorter or older in a way that a power loss explains.
func (t *Tx) change() (change, error) {
	st, info, rebooted := &t.st, t.file.Info(), t.st.Boot != t.boot
	switch {
	case st.SeenFile == "" || t.copied():
		return unchanged, nil
	case t.changedByUs():
		return unchanged, nil
	case t.file.Identity() != st.SeenFile:
		return moved, nil
	case info.Size > st.SeenSize:
		return grown, nil
	case rebooted && (info.Size < st.SeenSize || info.Mtime < st.SeenMtime):
		return unchanged, nil
	case info.Size < st.SeenSize:
		return shorter, nil
	case info.Mtime == st.SeenMtime:
		if st.SeenYoung && t.replaced() == placeMoved {
			return rewritten, nil
		}
		return unchanged, nil
	case t.touchedOnly(info):
		t.notice() // reading the file changes its time of access
		return unchanged, nil
	}
	if grows, err := t.grows(); grows || err != nil {
		return grown, err
	}
	return rewritten, nil
}

// copied reports whether the directory is not the one of the last commit, or was
// restored from a copy.
func (t *Tx) copied() bool {
	st := &t.st
	return st.Lock != t.lockID || st.LockMtime != 0 && st.LockMtime != t.lockMtime
}

// placeChange says whether the bytes are elsewhere, which a file system may not tell.
type placeChange int

const (
	placeUnknown placeChange = iota
	placeMoved
	placeKept
)

// replaced reports whether the file's bytes are elsewhere on the disk, as they
// are after it was truncated and filled again.
func (t *Tx) replaced() placeChange {
	place := t.file.Place()
	switch {
	case place == "" || t.st.SeenPlace == "":
		return placeUnknown
	case place != t.st.SeenPlace:
		return placeMoved
	}
	return placeKept
}

// touchedOnly recognises touch(1), which sets the times of access and change to
// the same value. A write that is read within the same tick of the clock does so
// too. If the disk cannot tell the two apart, it counts as a write if nothing
// waits: a prompt that comes twice is better than one that never comes. A write
// also gives the inode that time of change.
func (t *Tx) touchedOnly(info disk.Info) bool {
	if info.Atime != info.Mtime {
		return false
	}
	switch t.replaced() {
	case placeMoved:
		return false
	case placeKept:
		return true
	}
	return info.Ctime != info.Mtime || t.st.Cursor < t.st.SeenSize
}

// grows reports whether somebody is appending at this moment to a file that seems
// to be written but no longer: a write sets the time of change first and the
// length last.
func (t *Tx) grows() (bool, error) {
	const looks = 10
	for range looks {
		info, err := t.file.Settled()
		if err != nil || info.Size > t.st.SeenSize {
			return true, err
		}
		time.Sleep(time.Millisecond) // some systems do not let us wait for the writer
	}
	return false, nil
}

// notice has the look of the file committed at once.
func (t *Tx) notice() { t.noticed, t.dirty = true, true }
