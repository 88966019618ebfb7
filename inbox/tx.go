package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// Tx is a transaction: it holds the inbox's lock, shows one state, and changes
// it in memory until Commit. It is not safe for concurrent use.
type Tx struct {
	box   *Inbox
	lock  *disk.Lock // nil in a view
	file  *disk.File // the queue file; nil when there is none
	store *journal.Store
	boot  string

	lockID    string // the lock file's identity
	lockMtime int64
	// settling says that the files do not show the last commit yet, as a view may
	// find them.
	settling bool

	st        journal.Record // the last record, and what the next one changes
	inFlight  *Delivery
	redeliver *Delivery
	offered   *offer // of the entry that Next returned last, if it was not delivered
	responded bool   // as it was found
	stale     *Delivery
	noticed   bool // what the file looks like is to be committed at once
	// lastLine is where the line before the cursor starts, if the cursor was moved.
	lastLine int64
	reanchor bool
	totals   *Totals // nil until they are asked for
	due      int64   // when the next scheduled entry is due, 0 for none
	// replacedWhy says why the queue file was found to be another one.
	replacedWhy string

	closed   bool
	dirty    bool
	pending  []journal.Line
	warnings []string
	// aside are the entries that were set aside unread: how many lines those are,
	// and how much of the journal they take.
	aside                  []SetAside
	asideLines, asideBytes int
	trying                 bool           // see tryLarge
	forget                 []string       // files that the commit leaves useless
	canceled               []canceledSpan // see canceledSpans
	canceledRead           bool
}

// Begin takes the inbox's lock, waiting for [Options].LockWait at most or
// until ctx is done (then the error matches [ErrLocked]), and reads the state. What a killed transaction left
// undone is done first. Close the transaction in any case.
func (b *Inbox) Begin(ctx context.Context) (*Tx, error) {
	lock, err := b.lock(ctx)
	if err != nil {
		return nil, err
	}
	t := b.newTx(lock)
	t.lockID, t.lockMtime = lock.Identity(), lock.Mtime()
	if err := t.load(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// makeGood does what a killed transaction left undone.
func (b *Inbox) makeGood(ctx context.Context) (warnings []string, err error) {
	t, err := b.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return t.Warnings(), t.Close()
}

// Seq is the number of the commit that this transaction would make next. A later
// commit has a greater one, whatever the clock says, as long as the journal lives.
func (t *Tx) Seq() int64 { return t.st.Seq + 1 }

// newTx is a transaction, or without a lock a view.
func (b *Inbox) newTx(lock *disk.Lock) *Tx {
	t := &Tx{box: b, lock: lock}
	t.store = journal.Open(b.path, lock, t.warn)
	t.boot = t.store.Boot()
	return t
}

// Close gives the lock back. What was not committed is forgotten.
func (t *Tx) Close() error {
	if t.closed {
		return nil
	}
	t.closed = true
	return errors.Join(t.survived(), t.file.Close(), t.store.Close(), t.lock.Release())
}

func (t *Tx) load() error {
	l, err := t.read()
	if err != nil {
		return err
	}
	if !l.Settled {
		if err := t.store.Replay(t.inFlightEnd(), t.settledEnd()); err != nil {
			return err
		}
		if err := t.openFile(); err != nil { // what was missing of it is there now
			return err
		}
		t.responded = t.inFlight != nil
	} else if err := t.adopt(); err != nil {
		return err
	}
	if err := t.finishHole(); err != nil {
		return err
	}
	if err := t.recognise(); err != nil {
		return err
	}
	if t.noticed {
		if err := t.Commit(); err != nil {
			return err
		}
	}
	if err := t.disbelieve(); err != nil {
		return err
	}
	if err := t.promote(); err != nil {
		t.warn("what is scheduled waits on: %v", err)
	}
	return nil
}

// read takes up what the journal says, and then opens the queue file: without the
// lock, a file that is older than the record would seem to have shrunk.
func (t *Tx) read() (l journal.Loaded, err error) {
	if l, err = t.store.Load(); err != nil {
		return l, err
	}
	t.st = l.Record
	if t.st.DigestEnd != t.st.Cursor { // a journal without a digest
		t.forgetDigest()
	}
	if err := t.openFile(); err != nil {
		return l, err
	}
	if t.inFlight, err = ownDelivery(t.st.InFlight); err != nil {
		return l, err
	}
	if t.redeliver, err = ownDelivery(t.st.Redeliver); err != nil {
		return l, err
	}
	return l, t.claim()
}

// openFile opens the queue file as it is now.
func (t *Tx) openFile() error {
	err := t.file.Close()
	if err != nil {
		return err
	}
	t.file, err = disk.OpenForeign(t.box.path, unix.O_RDONLY)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read inbox: %w", err)
	}
	return nil
}

// ownDelivery reads what a journal record holds, or nothing.
func ownDelivery(record json.RawMessage) (*Delivery, error) {
	if len(record) == 0 {
		return nil, nil
	}
	d := new(Delivery)
	m, err := flat.Parse(record)
	if err == nil {
		err = d.decode(m)
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: entry in flight: %w: %w", ErrCorrupt, err)
	}
	return d, nil
}

// claim refuses a directory whose state belongs to another inbox, unless that
// one is gone and left nothing in flight: then it was renamed.
func (t *Tx) claim() error {
	if t.st.Inbox == "" || t.st.Inbox == t.box.name {
		t.st.Inbox = t.box.name
		return nil
	}
	other := t.box.file(t.st.Inbox)
	there, err := disk.Exists(other)
	if err != nil {
		return err
	}
	if there || t.inFlight != nil || t.redeliver != nil {
		return fmt.Errorf("the state in %s belongs to the inbox %s: give %s a directory of its own (or, if it is %s renamed, recover under the old name first): %w",
			t.box.dir, t.st.Inbox, t.box.name, t.st.Inbox, ErrOtherInbox)
	}
	t.warn("taking over the state of %s, which is gone", other)
	t.st.Inbox, t.dirty = t.box.name, true
	return nil
}

// viewing reports whether nothing may be changed.
func (t *Tx) viewing() bool { return t.lock == nil }

// inFlightEnd is where the entry in flight ends in the queue file, 0 if it is not
// in there.
func (t *Tx) inFlightEnd() int64 { return endOf(t.inFlight) }

// settledEnd is how far the queue file was delivered or settled.
func (t *Tx) settledEnd() int64 { return max(t.st.Cursor, endOf(t.inFlight), endOf(t.redeliver)) }

func endOf(d *Delivery) int64 {
	if d == nil || d.Detached {
		return 0
	}
	return d.EndOffset
}

func (t *Tx) size() int64 {
	if t.file == nil {
		return 0
	}
	return t.file.Info().Size
}

func (t *Tx) mark() Mark {
	if t.file == nil {
		return Mark{}
	}
	return Mark{Size: t.file.Info().Size, Mtime: t.file.Info().Mtime}
}

func (t *Tx) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// Warnings are sentences about what was found and mended, for a person.
func (t *Tx) Warnings() []string { return t.warnings }

// Dirty reports whether there is anything to commit.
func (t *Tx) Dirty() bool { return t.dirty }

// Cursor is the byte offset of the first line not yet settled.
func (t *Tx) Cursor() int64 { return t.st.Cursor }

// InFlight is the entry that was delivered and not settled, or nil.
func (t *Tx) InFlight() *Delivery { return t.inFlight }

// Responded reports whether .responded was there: heartbeat-rs's sign that the
// entry in flight is answered when the consumer comes back.
func (t *Tx) Responded() bool { return t.responded }

// Stale is an .in-flight that was found although the cursor is past it, as a
// heartbeat-rs that was killed amid an acknowledgement leaves it. It was
// answered, and Commit removes it.
func (t *Tx) Stale() *Delivery { return t.stale }
