package inbox

import (
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
)

// anchorSpan is how much before the cursor is kept in mind at the least, and
// tailSpan how much of what waits at the most.
const (
	anchorSpan = 4 << 10
	tailSpan   = 16 << 10
)

// remember notes in the record to be committed what the queue file is recognised
// by.
func (t *Tx) remember(next *journal.Record) {
	if t.reanchor {
		t.anchor(next)
	}
	t.extendDigest(next)
	if t.file == nil {
		return
	}
	now := t.mark()
	next.SeenFile, next.SeenPlace, next.SeenYoung = t.file.Identity(), t.file.Place(), disk.Young(now.Mtime)
	t.rememberTail(next, now)
	next.SeenSize, next.SeenMtime = now.Size, now.Mtime
}

// anchor recognises the file that the cursor is set in: by the hash of the
// bytes before the cursor, at least the whole last line.
func (t *Tx) anchor(next *journal.Record) {
	next.AnchorStart, next.AnchorSum = 0, ""
	if t.file == nil || next.Cursor == 0 {
		return
	}
	start := max(0, min(t.lastLine, next.Cursor-anchorSpan))
	sum, err := hashRange(t.file, start, next.Cursor)
	if err != nil {
		return // the file shrank just now: the next transaction notices
	}
	next.AnchorStart, next.AnchorSum = start, sum
}

// rememberTail hashes the last of what waits, which tells an edit from a refill.
func (t *Tx) rememberTail(next *journal.Record, now Mark) {
	start := max(next.Cursor, now.Size-tailSpan)
	if next.TailSum != "" && next.TailStart == start && (Mark{next.SeenSize, next.SeenMtime}) == now {
		return
	}
	next.TailStart, next.TailSum = 0, ""
	if start >= now.Size {
		return
	}
	sum, err := hashRange(t.file, start, now.Size)
	if err != nil {
		return // likewise
	}
	next.TailStart, next.TailSum = start, sum
}

// rememberOwn hashes the last of what the transition appends to the queue file:
// nobody has looked at the file with that yet.
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

// lacksOwn reports whether what the last commit appended stands no longer where
// it was to stand. Somebody edited the file then, or appended at the same time.
func (t *Tx) lacksOwn() (bool, error) {
	st := &t.st
	if st.OwnSum == "" || st.Boot != t.boot || t.changedByUs() || t.settling || t.copied() {
		return false, nil
	}
	if t.size() < st.OwnEnd {
		return true, nil
	}
	sum, err := hashRange(t.file, st.OwnStart, st.OwnEnd)
	return sum != st.OwnSum, err
}

// changedByUs reports whether an earlier commit's work was done on the queue file
// just now, or is about to be: what its inode tells is then our own doing.
func (t *Tx) changedByUs() bool {
	return t.store.Changed() || t.viewing() && t.st.Punching != 0 // see finishHole
}

// tail is what became of the entries that waited when the last commit was made.
type tail int

const (
	tailSame    tail = iota // all of them are there, and were looked at
	tailAlike               // they may be: not all of them were looked at
	tailChanged             // some are not there any more
)

// tail compares what stands there now with what waited.
func (t *Tx) tail() (tail, error) {
	st := &t.st
	switch {
	case t.size() < st.SeenSize:
		return tailChanged, nil
	case st.Cursor >= st.SeenSize:
		return tailSame, nil
	case st.TailSum == "": // a journal without it
		return tailSame, nil
	}
	sum, err := hashRange(t.file, st.TailStart, st.SeenSize)
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

// change is what happened to the queue file since the last commit, as far as
// its inode and the directory tell.
type change int

const (
	unchanged change = iota
	grown
	shorter
	moved     // another file is in its place
	rewritten // written to, and no longer than before
)

// change tells a file that somebody wrote to, or put in the old one's place, from
// one that is as it was. It is as it was if the whole directory was copied, which
// gives another lock file, or one with another time; if it was touched; and after
// what a power loss may do to a file, which is to be shorter or to have an older
// time.
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
		if st.SeenYoung && t.replaced() == yes {
			return rewritten, nil
		}
		return unchanged, nil
	case t.touchedOnly(info):
		t.notice() // reading the file will change the time of access
		return unchanged, nil
	}
	if grows, err := t.grows(); grows || err != nil {
		return grown, err
	}
	return rewritten, nil
}

// copied reports whether the directory is not the one of the last commit, or was
// written anew from a copy.
func (t *Tx) copied() bool {
	st := &t.st
	return st.Lock != t.lockID || st.LockMtime != 0 && st.LockMtime != t.lockMtime
}

// answer is one to a question that the file system may not answer.
type answer int

const (
	unknown answer = iota
	yes
	no
)

// replaced reports whether the file's bytes are in another place on the disk, as
// they are after it was truncated and filled again.
func (t *Tx) replaced() answer {
	place := t.file.Place()
	switch {
	case place == "" || t.st.SeenPlace == "":
		return unknown
	case place != t.st.SeenPlace:
		return yes
	}
	return no
}

// touchedOnly recognises touch(1), which gives one time for both access and
// change. So does a write that is read within the same tick of the clock: where
// the disk does not tell the two apart it is taken for a write if nothing waits,
// for a prompt that comes twice is better than one that never comes. A write gives
// the inode the same time of change.
func (t *Tx) touchedOnly(info disk.Info) bool {
	if info.Atime != info.Mtime {
		return false
	}
	switch t.replaced() {
	case yes:
		return false
	case no:
		return true
	}
	return info.Ctime != info.Mtime || t.st.Cursor < t.st.SeenSize
}

// grows reports whether somebody is just appending to a file that seems to be
// written to and no longer than before: a write sets the time of change first
// and the length last.
func (t *Tx) grows() (bool, error) {
	const looks = 10
	for range looks {
		info, err := t.file.Settled()
		if err != nil || info.Size > t.st.SeenSize {
			return true, err
		}
		time.Sleep(time.Millisecond) // where the system does not let us wait for the writer
	}
	return false, nil
}

// notice has what the file looks like committed at once.
func (t *Tx) notice() { t.noticed, t.dirty = true, true }
