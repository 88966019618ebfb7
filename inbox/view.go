package inbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
	"heartbeat/internal/machine"
)

// View is an inbox as it was at one moment. It takes no lock and changes nothing, so it works while another
// process holds the lock, and where nothing can be written. Close it when done.
type View struct {
	*state        // of a transaction that is never committed
	results int64 // the length of the results as of the last commit
}

// viewTries bounds how often a view is tried again because of a commit. The last try ignores what others may
// have changed by hand.
const viewTries = 20

// corruptTries bounds the tries if the state is invalid, as it may seem to be while somebody is writing it.
const corruptTries = 5

// View reads the inbox. Its errors about invalid state are those of [Inbox.Begin].
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
	v := &View{state: &t.state}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.Close())
		}
	}()
	err = journal.Reading(b.beside(journal.LockName), func(lock *disk.File) error {
		t.lockID, t.lockMtime = lock.Identity(), lock.Info().Mtime
		return nil
	})
	if err != nil {
		return nil, err
	}
	before, err := t.read()
	if err != nil {
		return nil, err
	}
	t.settling, v.results = !before.Followed, before.Record.Ends[journal.Results].At
	var invalid error
	if before.Followed && !journalOnly {
		invalid = t.takeOver()
	} else {
		t.responded = t.inFlight != nil
	}
	if invalid == nil {
		invalid = t.recognise()
	}
	after, err := journal.Newest(b.path)
	if err != nil {
		return nil, err
	}
	if after != before.Version && !journalOnly {
		return nil, errMoved // the files may only have seemed invalid
	}
	return v, invalid
}

// CostLines calls f for the lines of .costs.jsonl that the state covers, oldest first, until f returns false.
// whole is false for a line that is still being written.
func (v *View) CostLines(f func(line []byte, whole bool) bool) error {
	if !v.tx.writtenHere() {
		return nil
	}
	return v.tx.box.costLines(v.tx.st.Ends[journal.Costs].At, f)
}

// CostLines is [View.CostLines] for the whole file. It takes no lock.
func (b *Inbox) CostLines(f func(line []byte, whole bool) bool) error { return b.costLines(-1, f) }

// costLines reads up to end. It reads the whole file if end is negative, or if the file is shorter because it
// was rotated.
func (b *Inbox) costLines(end int64, f func(line []byte, whole bool) bool) error {
	return journal.Reading(b.CostsPath(), func(file *disk.File) error {
		size := file.Info().Size
		if end >= 0 && end <= size {
			size = end
		}
		return lines.Each(io.NewSectionReader(file, 0, size), 0, func(_, _ int64, l []byte, whole bool) bool {
			return blank(l) || f(l, whole)
		})
	})
}

// SettledView returns a view whose commit has reached the files, unless that takes more than a few tries.
func (b *Inbox) SettledView() (*View, error) {
	for try := 1; ; try++ {
		v, err := b.View()
		if err != nil || !v.Settling() || try == corruptTries {
			return v, err
		}
		if err := v.Close(); err != nil {
			return nil, err
		}
		time.Sleep(time.Duration(try) * time.Millisecond)
	}
}

// Close ends the view.
func (v *View) Close() error { return v.tx.Close() }

// Size returns the length of the queue file, -1 if there is none.
func (v *View) Size() int64 {
	if v.tx.file == nil {
		return -1
	}
	return v.tx.queueSize()
}

// WrittenAt returns when the queue file was written last; zero if there is none.
func (v *View) WrittenAt() time.Time {
	if v.tx.file == nil {
		return time.Time{}
	}
	return time.Unix(0, v.tx.queueMark().Mtime)
}

// Told is the last commit's record of settled lines and their outcomes.
type Told struct {
	Seq int64 // the number of the commit
	// Lines from From up to the cursor were settled one after the other. Waits is the start of the first line
	// that was never delivered.
	From, Waits int64
	// Results is the length of the results file at that commit.
	Results int64
	// Whole means that nothing was ever removed from results, dead letters and events.
	Whole bool
}

// Told returns what the last commit recorded.
func (v *View) Told() (Told, error) {
	st := &v.tx.st
	told := Told{Seq: st.Seq, From: st.DigestStart, Waits: v.tx.settledEnd(), Results: v.results, Whole: true}
	for _, k := range []journal.Kind{journal.Results, journal.DeadLetters, journal.Events} {
		info, err := disk.StatName(v.tx.box.fileOf(k))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return told, err
		}
		told.Whole = told.Whole && st.Ends[k].Generation == 0 && info.Size >= st.Ends[k].At
	}
	return told, nil
}

// Skips reports whether a waiting line will be passed without delivery: it was canceled, or its outcome is known.
func (v *View) Skips(start int64) bool { return v.tx.skips(start) }

// Redeliver returns the entry that was given back and comes next, as it was last delivered, or nil.
func (v *View) Redeliver() *Delivery { return v.tx.redeliver }

// Settling reports whether the last commit has yet to reach the documented files: its process is still at
// work, or was killed and the next transaction finishes the commit.
func (v *View) Settling() bool { return v.tx.settling }

// Replaced returns why the queue file is not the one in which the cursor was set, and so is read from its start; "" if
// it is the same file.
func (v *View) Replaced() string { return v.tx.replacedWhy }

// ReadAgain returns sentences about an inbox or a state that somebody restored or edited. It does so for a day, or
// while lines are read that may have been settled before. It leaves out what is in [View.Warnings].
func (v *View) ReadAgain() []string {
	if r := v.tx.rereading(); r != nil && !v.tx.justFound && r.isNews(v.tx.box.utcNow(), v.Cursor()) {
		if _, err := v.tx.settledBefore(v.Cursor()); err == nil && v.tx.looked != nil {
			return []string{r.sentence(v.tx.looked.again)}
		}
		return []string{r.sentence(0)}
	}
	return nil
}

// LastSession returns the session that answered last, "" if there is none.
func (v *View) LastSession() string { return v.tx.st.Session }

// Totals returns the counts so far.
func (v *View) Totals() (Totals, error) {
	n, err := v.tx.readTotals()
	if err != nil {
		return Totals{}, err
	}
	return n.complete(), nil
}

// Find returns where the entries with these envelope ids are, in the words of [Receipt].Found, without those that are
// nowhere. It reads everything once.
func (v *View) Find(ids ...string) (map[string]string, error) {
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
	Entries int64 `json:"entries"` // including a last line without its newline
	Bytes   int64 `json:"bytes"`   // of their lines, and of blank lines in between
	// Torn means that the last line has no newline and was not delivered yet.
	Torn bool `json:"torn"`
}

// Backlog counts what waits behind the cursor and the entry in flight, and what was given back. It reads those bytes.
func (v *View) Backlog(ctx context.Context) (Backlog, error) {
	b, _, err := v.Count(ctx, nil)
	return b, err
}

// Waiting is an entry that waits, with what sets it apart.
type Waiting struct {
	Entry
	Doomed Reason // why it becomes a dead letter instead of being delivered, "" if it does not
	Torn   bool   // its line has no newline yet
}

// Next returns the first n waiting entries, in order of delivery. It reads no further.
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

func (t *Tx) waiting(l line) Waiting {
	w := Waiting{Torn: !l.terminated}
	if l.tooLong {
		w.Entry, w.Doomed = Entry{EntryID: l.id, Start: l.start, End: l.end, Attempt: 1}, ReasonTooLong
		return w
	}
	w.Entry = decodeEntry(l.raw)
	w.Start, w.End, w.Doomed = l.start, l.end, t.undeliverable(w.Entry, l.raw)
	return w
}

// Lock returns the id of the process that holds the inbox's lock at this moment, 0 if none does, and -1 if that is
// unknown. It does not touch the lock.
func (b *Inbox) Lock() int { return machine.LockHolder(b.beside(journal.LockName)) }

// NoteHead records a time at which the waiting entries were there, because the queue file itself shows only its last
// write. It does nothing if it would have to wait for the lock, or would create files that the directory's owner does
// not own.
func (b *Inbox) NoteHead(ctx context.Context) {
	if dir, err := disk.StatDir(b.dir); err != nil || dir.UID != uint32(os.Geteuid()) || b.Lock() != 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteWait)
	defer cancel()
	t, err := b.Begin(ctx)
	if err != nil {
		return
	}
	t.dirty = true
	_ = t.Commit() // best effort: the next commit notes it
	_ = t.Close()
}

// noteWait allows for a lock that is held briefly.
const noteWait = 100 * time.Millisecond
