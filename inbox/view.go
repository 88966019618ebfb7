package inbox

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/machine"
)

// View is an inbox as it was at one moment. It takes no lock and changes nothing,
// so it works while somebody else holds the lock, and where nothing can be
// written. Close it when done.
type View struct {
	tx       *Tx // never committed
	settling bool
	results  int64 // how long the last commit says that the file is
}

// viewTries bounds how often a view is tried because somebody committed
// meanwhile. The last try ignores what others may have changed by hand.
const viewTries = 20

// corruptTries bounds it if the state is invalid: a file that somebody is writing
// may look so.
const corruptTries = 5

// View looks at the inbox. Its errors about invalid state are those of
// [Inbox.Begin].
func (b *Inbox) View() (*View, error) {
	for try := 1; ; try++ {
		v, err := b.view(try == viewTries)
		if err == nil || !errors.Is(err, errMoved) && (!errors.Is(err, ErrCorrupt) || try > corruptTries) {
			return v, err
		}
		time.Sleep(time.Duration(try) * time.Millisecond / 4)
	}
}

var errMoved = errors.New("somebody committed meanwhile")

func (b *Inbox) view(journalOnly bool) (_ *View, err error) {
	t := b.newTx(nil)
	v := &View{tx: t}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.Close())
		}
	}()
	if t.lockID, t.lockMtime, err = lockOf(b.beside(journal.LockName)); err != nil {
		return nil, err
	}
	before, err := t.read()
	if err != nil {
		return nil, err
	}
	v.settling, v.results = !before.Settled, before.Record.Ends[journal.Results].At
	t.settling = v.settling
	var seen error
	if before.Settled && !journalOnly {
		seen = t.takeOver()
	} else {
		t.responded = t.inFlight != nil
	}
	if seen == nil {
		seen = t.recognise()
	}
	after, err := journal.Newest(b.path)
	if err != nil {
		return nil, err
	}
	if after != before.Version && !journalOnly {
		return nil, errMoved
	}
	return v, seen
}

func lockOf(path string) (identity string, mtime int64, err error) {
	f, err := disk.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	return f.Identity(), f.Info().Mtime, f.Close()
}

// Close ends the view.
func (v *View) Close() error { return v.tx.Close() }

// Cursor is the byte offset of the first line not yet settled.
func (v *View) Cursor() int64 { return v.tx.Cursor() }

// Size is the length of the queue file, -1 if there is none.
func (v *View) Size() int64 {
	if v.tx.file == nil {
		return -1
	}
	return v.tx.queueSize()
}

// WrittenAt is when the queue file was written last; zero if there is none.
func (v *View) WrittenAt() time.Time {
	if v.tx.file == nil {
		return time.Time{}
	}
	return time.Unix(0, v.tx.queueMark().Mtime)
}

// Told is what the last commit says of lines that are settled, and of what became of them.
type Told struct {
	Seq int64 // its number
	// From is where the lines begin that were settled one after the other, up to the cursor;
	// Waits where the first one begins that was never delivered.
	From, Waits int64
	// Results is how long the file of results was.
	Results int64
	// Whole says that nothing was ever taken out of results, dead letters and events.
	Whole bool
}

// Told is what the last commit tells.
func (v *View) Told() (Told, error) {
	st := &v.tx.st
	told := Told{Seq: st.Seq, From: st.DigestStart, Waits: v.waitsFrom(), Results: v.results, Whole: true}
	for _, k := range []journal.Kind{journal.Results, journal.DeadLetters, journal.Events} {
		info, err := disk.StatName(v.tx.box.fileOf(k))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return told, err
		}
		told.Whole = told.Whole && st.Ends[k].Generation == 0 && info.Size >= st.Ends[k].At
	}
	return told, nil
}

// Skips reports whether a line that waits will be passed over: it was canceled, or its
// outcome is known.
func (v *View) Skips(start int64) bool { return v.tx.skips(start) }

// InFlight is the entry that was delivered and not settled, or nil.
func (v *View) InFlight() *Delivery { return v.tx.InFlight() }

// Responded is [Tx.Responded].
func (v *View) Responded() bool { return v.tx.Responded() }

// Redeliver is the entry that was given back and comes next, as it was last
// delivered, or nil.
func (v *View) Redeliver() *Delivery { return v.tx.redeliver }

// Settling reports that the last commit has not reached the documented files: its
// process is still at work, or was killed and the next transaction finishes the
// commit.
func (v *View) Settling() bool { return v.settling }

// Replaced says why the queue file is not the one that the cursor was set in, and
// so is read from its start; it is empty if it is the same file.
func (v *View) Replaced() string { return v.tx.replacedWhy }

// Warnings are sentences about what the next transaction will find and repair.
func (v *View) Warnings() []string { return v.tx.Warnings() }

// ReadAgain says what was found, today or while lines are read that may have been
// settled before, of an inbox or a state that somebody restored or edited; nil for
// nothing, or for what [View.Warnings] say.
func (v *View) ReadAgain() []string {
	if r := v.tx.rereading(); r != nil && !v.tx.justFound && r.told(v.tx.box.utcNow(), v.Cursor()) {
		if _, err := v.tx.settledBefore(v.Cursor()); err == nil && v.tx.looked != nil {
			return []string{r.sentence(v.tx.looked.again)}
		}
		return []string{r.sentence(0)}
	}
	return nil
}

// Paused is the pause that holds now, or nil.
func (v *View) Paused() (*Pause, error) { return v.tx.Paused() }

// Backoff is the back-off that holds now, or nil.
func (v *View) Backoff() (*Backoff, error) { return v.tx.Backoff() }

// Streak is how many failures there were in a row: see [Tx.Streak].
func (v *View) Streak() (int, error) { return v.tx.Streak() }

// Waiter is who waits for the next entry, or nil: see [Tx.Waiter].
func (v *View) Waiter() (*Waiter, error) { return v.tx.Waiter() }

// Sessions are the sessions that are remembered, the one that reported last
// first.
func (v *View) Sessions() ([]Session, error) { return v.tx.Sessions() }

// LastSession is the session that answered last, empty if there is none.
func (v *View) LastSession() string { return v.tx.st.Session }

// Boot is the boot of the last commit: see [machine.BootID].
func (v *View) Boot() string { return v.tx.st.Boot }

// Totals are what was counted so far.
func (v *View) Totals() (Totals, error) {
	n, err := v.tx.readTotals()
	if err != nil {
		return Totals{}, err
	}
	return n.complete(), nil
}

// Find says where the entry with that envelope id is, as a [Receipt] does; empty
// if it is nowhere.
func (v *View) Find(id string) (string, error) {
	found, err := v.FindAll([]string{id})
	return found[id], err
}

// FindAll is [View.Find] for many ids; those that are nowhere are left out. It
// reads everything once.
func (v *View) FindAll(ids []string) (map[string]string, error) {
	wanted := map[string]bool{}
	for _, id := range ids {
		wanted[id] = true
	}
	found, err := v.tx.find(wanted)
	where := map[string]string{}
	for id, p := range found {
		where[id] = p.where
	}
	return where, err
}

// Backlog is what waits in the queue.
type Backlog struct {
	Entries int64 `json:"entries"` // including a last one without newline
	Bytes   int64 `json:"bytes"`   // of their lines, and of blank lines between them
	// Torn says that the last line has no newline and was not delivered yet.
	Torn bool `json:"torn"`
}

// Backlog counts what waits behind the cursor and the entry in flight, and what
// was given back. It reads those bytes.
func (v *View) Backlog(ctx context.Context) (Backlog, error) {
	b, _, err := v.Count(ctx, nil)
	return b, err
}

// waitsFrom is where the first line starts that was never delivered.
func (v *View) waitsFrom() int64 { return v.tx.settledEnd() }

// Waiting is an entry that waits, and what is special about it.
type Waiting struct {
	Entry
	TooLong bool // over [MaxLine]: it becomes a dead letter
	Empty   bool // there is nothing in it: it becomes a dead letter
	Expired bool // too late: it becomes a dead letter
	Torn    bool // its line has no newline yet
	// InvalidLimits says that its limits cannot be understood: it becomes a dead letter.
	InvalidLimits bool
	// Wide says that its line is UTF-16 or UTF-32: it becomes a dead letter.
	Wide bool
}

// Next returns the first n entries that wait, in order of delivery. It reads no
// more than those.
func (v *View) Next(n int) ([]Waiting, error) {
	var all []Waiting
	if n < 1 {
		return nil, nil
	}
	err := v.Waits(nil, func(w Waiting) bool {
		all = append(all, w)
		return len(all) < n
	})
	return all, err
}

func (t *Tx) waiting(l line, now time.Time) Waiting {
	if l.tooLong {
		return Waiting{Entry: Entry{EntryID: l.id, Start: l.start, End: l.end, Attempt: 1}, TooLong: true, Torn: !l.terminated}
	}
	e := decodeEntry(l.raw)
	e.Start, e.End = l.start, l.end
	err := t.checkLimits(e)
	return Waiting{Entry: e, Empty: strings.TrimSpace(e.Text) == "", Expired: e.expired(now), InvalidLimits: err != nil, Wide: t.wide(l.raw), Torn: !l.terminated}
}

// Raw is the entry's line as it is in the inbox, without its end.
func (e Entry) Raw() RawLine { return rawLineOf(e.raw) }

// SentAt is when `send` appended the entry; zero if the line does not say.
func (e Entry) SentAt() time.Time { return e.timeMember(sentAtMember) }

// Lock says who holds the inbox's lock at this moment: a process id, -1 if that
// is unknown, 0 if nobody does. It does not touch the lock.
func (b *Inbox) Lock() int { return machine.LockHolder(b.beside(journal.LockName)) }
