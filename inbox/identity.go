package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// verdict says whether the queue file is the one in which the cursor was set.
type verdict struct {
	// replaced says why it is another file, "" if it is the same.
	replaced string
	// edited says that it is the same file, but that waiting lines may have changed.
	edited bool
	// doubtful says that settled lines may have been written again as new work.
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
	for _, d := range []*Delivery{t.inFlight, t.redeliver} {
		if d == nil || d.Detached {
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
	kind, err := t.change()
	if err != nil {
		return err
	}
	lacksOwn, err := t.lacksOwn()
	if err != nil || kind == unchanged && !lacksOwn {
		return err
	}
	left, err := t.tail()
	if lacksOwn {
		left = tailChanged
	}
	if err != nil || kind == grown && left != tailChanged {
		return err
	}
	same, err := t.keepsSettled()
	if err != nil {
		return err
	}
	nothingWaited := t.st.Cursor == t.st.SeenSize || t.st.Cursor == 0 && t.inFlight != nil && t.inFlight.EndOffset == t.st.SeenSize
	asLong, asOld := t.queueSize() == t.st.SeenSize, t.queueMark().Mtime == t.st.SeenMtime
	switch {
	case !same:
		v.replaced = otherSettled(t.st.Cursor)
	case kind == rewritten && left == tailSame:
		v.replaced = "it was rewritten"
	case kind == moved && asLong && nothingWaited && !asOld:
		v.replaced = "it is another file"
	default:
		v.edited = true
		v.doubtful = left == tailChanged && t.queueSize() == t.st.Cursor || left != tailChanged && asLong && !asOld
	}
	return nil
}

func otherSettled(cursor int64) string {
	return fmt.Sprintf("what is before the cursor %d is not what was settled", cursor)
}

// otherBytes says how the bytes before the cursor differ from what was settled, "" if they do not.
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
		b = []byte(toUTF8(b))
	}
	return bytes.Equal(b, d.rawBytes()), nil
}

// recognise compares the queue file with the state, and starts over if it is another file.
func (t *Tx) recognise() error {
	if t.copied() {
		t.st.SyncedTo = 0
	}
	v, err := t.compare()
	if errors.Is(err, io.EOF) { // it was truncated during the comparison
		if err = t.openFile(); err == nil {
			v, err = t.compare()
		}
	}
	unread := t.st.Cursor == 0 && t.inFlight == nil && t.redeliver == nil
	switch {
	case err != nil:
		return err
	case v.replaced != "" && !unread:
		t.replacedWhy = v.replaced
		t.warn("inbox %s was truncated or replaced (%s): reading it from its start", t.box.path, v.replaced)
		t.startOver(v.replaced)
		t.st.Replaced, err = flat.JSON(Replacement{At: t.box.utcNow(), Why: v.replaced})
		err = errors.Join(err, t.addEvent(Event{Event: EventReplaced, Reason: v.replaced}))
	case v.replaced != "" || v.edited:
		if err = t.keepEdited(v); err == nil && unread {
			t.readAgain("the inbox was replaced before anything of it was read", 0, t.st.SeenSize)
		}
	}
	if err != nil {
		return err
	}
	return t.findOlder()
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
			return fmt.Errorf("go on in the inbox %s, which somebody edited: %w", t.box.path, err)
		}
	}
	t.st.SyncedTo, t.st.Reached = t.queueSize(), nil
	t.st.QueueGeneration++
	t.notice()
	if v.doubtful && t.st.Cursor > 0 {
		t.warn("inbox %s was rewritten, and begins with lines that were settled: they are not delivered again unless you remove %s", t.box.path, t.store.Cursor().Path())
	}
	if len(v.lost) > 0 {
		t.warn("the entry that was handed over is no longer in the inbox %s: it is kept apart from the file, and the line in its place is another entry", t.box.path)
	}
	t.detach(v.lost...)
	return nil
}

// startOver reads the queue file from its start, because it is another file.
func (t *Tx) startOver(why string) {
	t.st.Cursor, t.st.SyncedTo, t.st.SeenFile, t.dirty = 0, 0, "", true
	t.st.AnchorStart, t.st.AnchorSum, t.st.Punching, t.st.Reached = 0, "", 0, nil
	t.forgetDigest()
	t.setCanceled(nil)
	t.st.QueueGeneration++
	t.detach(t.inFlight, t.redeliver)
	t.readAgain(fmt.Sprintf("the inbox was truncated or replaced (%s), and is read from its start", why), 0, t.st.SeenSize)
}

// noticeGone is called before a queue file is created: the previous one will not come back.
func (t *Tx) noticeGone() {
	if t.file == nil && (t.st.Cursor > 0 || t.st.SeenFile != "") {
		t.startOver("it was removed")
	}
}

// detach separates the entry in flight, or the one to be redelivered, from a queue file that no longer has
// it.
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

// SameInbox reports whether two absolute paths name one inbox. A link as the last element names another
// inbox, since the state lies beside the link.
func SameInbox(a, b string) bool {
	if a == b {
		return true
	}
	dirA, errA := filepath.EvalSymlinks(filepath.Dir(a))
	dirB, errB := filepath.EvalSymlinks(filepath.Dir(b))
	return errA == nil && errB == nil && dirA == dirB && filepath.Base(a) == filepath.Base(b)
}

// findOlder recognises a state that is older than the results and dead letters: these files are longer than
// the state says, and name deliveries with higher numbers. In that case the entry in flight, and lines behind
// the cursor, may have been settled.
func (t *Tx) findOlder() error {
	st := &t.st
	if st.Seq > 0 && !t.here || t.settling {
		return nil
	}
	since, last, until := st.Seq+1, st.Seq, st.SeenSize
	for _, k := range []journal.Kind{journal.Results, journal.DeadLetters} {
		err := t.eachUnknown(k, func(l Letter) {
			for _, d := range []*Delivery{t.inFlight, t.redeliver} {
				if d != nil && d.EntryID == l.EntryID && (l.FirstSeq == d.first() || l.FirstSeq == t.named) {
					since = min(since, l.FirstSeq)
				}
			}
			if last = max(last, l.FirstSeq); l.FirstSeq > st.Seq {
				until = max(until, l.EndOffset)
			}
		})
		switch {
		case errors.Is(err, ErrCorrupt):
			t.warn("whether the state in %s is older than %s is not known: %v", t.box.dir, k.Name(), err)
		case err != nil: // a commit would mark the whole file as known
			return fmt.Errorf("find out whether the state in %s is older than %s: %w: nothing is delivered until that can be read", t.box.dir, k.Name(), err)
		}
	}
	if last == st.Seq && since > st.Seq {
		return nil
	}
	const why = "the state beside the inbox is older than the results or the dead letters, as after a restore"
	t.warn("%s: entries whose outcome is known are not delivered again", why)
	st.Seq, t.noticed = last, true
	t.readAgain(why, since, until)
	err := t.addEvent(Event{Event: EventOlder, Reason: why})
	for _, d := range []*Delivery{t.inFlight, t.redeliver} {
		if d == nil || err != nil {
			continue
		}
		look := func() (string, error) { return t.settledBefore(d.StartOffset) }
		if d.Detached {
			look = func() (string, error) { return t.settledAs(t.rereading(), d.rawBytes()) }
		}
		var how string
		if how, err = look(); how != "" && err == nil {
			err = t.settleAgain(d, how)
		}
	}
	return err
}

// eachUnknown visits the lines of a file that the state does not know. It does so once, because the next
// commit records the file's length.
func (t *Tx) eachUnknown(k journal.Kind, visit func(l Letter)) error {
	end := &t.st.Ends[k]
	info, err := disk.StatName(t.box.fileOf(k))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && !info.IsRegular { // opening it gives the error, also where its size is 0
		f, err := journal.OpenState(t.box.fileOf(k))
		return errors.Join(err, f.Close())
	}
	if err != nil || t.st.Seq == 0 || info.Size == end.At && t.named == 0 || info.Size < end.At && k == journal.DeadLetters {
		return nil // without outcomes there is nothing to compare
	}
	from := end.At
	if info.Size < from {
		end.Generation++ // rotated away since
	}
	if info.Size < from || t.named > 0 {
		from = 0
	}
	end.At = info.Size
	return t.eachLine(k, from, func(line []byte) {
		seq := flat.Value(line).Get("first_seq")
		if n, err := strconv.ParseInt(string(seq), 10, 64); err != nil || n <= 0 || n >= maxSeq || !t.mayTell(line, n) {
			return // decoding every line would take long
		}
		if l, mark, ok := ParseLetter(line); ok && !mark && l.FirstSeq > 0 && l.FirstSeq < maxSeq {
			visit(l)
		}
	})
}

// mayTell reports whether an outcome may show that the state is older: it belongs to a later delivery, or to
// an entry that is in flight or was given back.
func (t *Tx) mayTell(line []byte, seq int64) bool {
	for _, d := range []*Delivery{t.inFlight, t.redeliver} {
		if d != nil && bytes.Contains(line, []byte(d.EntryID)) {
			return true
		}
	}
	return seq > t.st.Seq
}
