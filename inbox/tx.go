package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/journal"
)

// Tx is a transaction: it holds the inbox's lock, shows one state, and changes that in memory until Commit.
// It is not safe for concurrent use.
type Tx struct {
	state
	held
	found
	changes
	offering
	accountant Accountant
	file       *disk.File // the queue file; nil if there is none
	store      *journal.Store
	totals     *Totals // nil until needed
	looked     *lookup // while lines are read that may have been settled
	over       string  // the session whose turn ends in this transaction
	chunk      []byte  // a buffer for hashing the queue file
	closed     bool
}

// held is the lock of a transaction, and what identifies its file.
type held struct {
	lock      *disk.Lock // nil in a view
	lockID    string
	lockMtime int64
}

// found is what this transaction found beside the last record.
type found struct {
	// settling means that the files do not show the last commit yet, which only a view can see.
	settling bool
	// here means that the state was written in this directory, and so is trusted.
	here  bool
	stale *Delivery
	// named is the number of the delivery in an .in-flight from another program, 0 for none.
	named int64
	// justFound means that this transaction has already warned of the reread.
	justFound bool
	// replacedWhy is why the queue file was found to be another file.
	replacedWhy string
}

// changes are what the next commit brings, beside the state itself.
type changes struct {
	dirty   bool
	failed  error // why there can be no commit: see encoded and sessions
	noticed bool  // the present state of the file is to be committed at once
	pending []journal.Line
	// lastLine is where the line before the cursor starts, if the cursor was moved.
	lastLine int64
	reanchor bool
	// person means that the next commit brings something that a person may want to hear of, brought that an earlier
	// commit of this transaction did.
	person, brought bool
	forget          []string // files that nothing needs after the commit
	delivers        bool     // the next commit brings a text that is then handed over
}

// offering is the search for the entry to deliver.
type offering struct {
	offered *offer        // the entry that Next returned last, until it is delivered
	worked  time.Duration // see Worked
	// aside holds the entries that were set aside without delivery, asideLines their number, and asideBytes
	// their size in the journal.
	aside                  []SetAside
	asideLines, asideBytes int
	trying                 bool // see tryLarge
	canceled               []canceledSpan
	due                    time.Time // when the next scheduled entry is due, zero for none
	notMoved               error     // why those that are due could not be moved
}

// state is what a [Tx] and a [View] show in the same way.
type state struct {
	tx        *Tx // which it is part of
	box       *Inbox
	boot      string
	st        journal.Record // the last record, with the changes for the next one
	inFlight  *Delivery
	redeliver *Delivery
	responded bool // as found
	warnings  []string
}

// Seq returns the number of the commit that this transaction would make next. A later commit has a greater
// number, whatever the clock says, as long as the journal exists.
func (t *Tx) Seq() int64 { return t.st.Seq + 1 }

// newTx returns a transaction, or a view if lock is nil.
func (b *Inbox) newTx(lock *disk.Lock) *Tx {
	t := &Tx{state: state{box: b}, held: held{lock: lock}}
	t.tx, t.accountant = t, newAccountant(Books{t})
	t.store = journal.Open(b.path, lock, t.warn)
	t.boot = t.store.Boot()
	return t
}

// viewing reports whether nothing may be changed.
func (t *Tx) viewing() bool { return t.lock == nil }

func (t *state) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// Warnings returns sentences, for a person, about what was found and repaired, or in a view about what the
// next transaction will find and repair.
func (t *state) Warnings() []string { return t.warnings }

// NeedsPerson reports whether a commit of this transaction brought something that a person may want to hear
// of: a dead letter, a pause, or a session that asks.
func (t *Tx) NeedsPerson() bool { return t.brought }

// Dirty reports whether there is anything to commit.
func (t *Tx) Dirty() bool { return t.dirty }

// Cursor returns the byte offset of the first line that is not settled.
func (t *state) Cursor() int64 { return t.st.Cursor }

// InFlight returns the entry that was delivered and not settled, or nil.
func (t *state) InFlight() *Delivery { return t.inFlight }

// Responded reports whether .responded existed: heartbeat-rs's sign that the entry in flight is answered when
// the consumer comes back.
func (t *state) Responded() bool { return t.responded }

// Stale returns an entry that .in-flight named although the cursor was past it: a heartbeat-rs that is killed while it
// acknowledges leaves that. The entry was answered, and Commit removes the file.
func (t *Tx) Stale() *Delivery { return t.stale }

// Begin takes the inbox's lock and reads the state. It waits for the lock for at most [Options].LockWait, or
// until ctx is done; the error then matches [ErrLocked]. It first finishes what a killed transaction left
// undone. Always close the transaction.
func (b *Inbox) Begin(ctx context.Context) (*Tx, error) {
	lock, err := disk.AcquireLock(ctx, b.beside(journal.LockName), b.opts.LockWait)
	if err != nil {
		return nil, fmt.Errorf("lock inbox %s: %w", b.path, err)
	}
	t := b.newTx(lock)
	t.lockID, t.lockMtime = lock.Identity(), lock.File().Info().Mtime
	if lock, claim, _ := strings.Cut(b.opts.Lock, "/"); lock != "" && lock != t.lockID && (claim == "" || claim != identity(b.LaunchLock())) {
		err = fmt.Errorf("work on inbox %s: its folder, or the lock in it, is another one than this session was started for", b.path)
	} else {
		err = t.load()
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// LockIdentity returns an [Options.Lock]. It identifies the file that [Inbox.Begin] locks and, as somebody may remove
// that one alone, the lock of the inbox's launcher or host.
func (b *Inbox) LockIdentity() string {
	return identity(b.beside(journal.LockName)) + "/" + identity(b.LaunchLock())
}

// identity returns a lock file's identity, "" if the file does not exist or cannot be opened.
func identity(path string) (id string) {
	_ = journal.Reading(path, func(lock *disk.File) error {
		id = lock.Identity()
		return nil
	})
	return id
}

// MakeGood finishes what a killed transaction left undone.
func (b *Inbox) MakeGood(ctx context.Context) (warnings []string, err error) {
	t, err := b.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return t.Warnings(), t.Close()
}

// Close releases the lock. Uncommitted changes are lost.
func (t *Tx) Close() error {
	if t.closed {
		return nil
	}
	t.closed = true
	var err error
	if t.trying { // the reading of a large line killed nobody
		err = disk.Remove(t.box.beside(triesName))
	}
	return errors.Join(err, t.file.Close(), t.store.Close(), t.lock.Release())
}

func (t *Tx) load() error {
	l, err := t.read()
	if err != nil {
		return err
	}
	if !l.Followed {
		if err := t.store.Replay(t.inFlightEnd(), t.settledEnd()); err != nil {
			return err
		}
		if err := t.openFile(); err != nil { // it has received the missing lines
			return err
		}
		t.responded = t.inFlight != nil
	} else if err := t.takeOver(); err != nil {
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
	if err := t.moveForeignAside(); err != nil {
		return err
	}
	if t.notMoved = t.promote(); t.notMoved != nil {
		t.due = t.box.opts.Now().Add(promoteRetry)
		t.warn("scheduled entries that are due keep waiting, and the next transaction tries again: %v", t.notMoved)
	}
	return nil
}

// read reads the journal and then opens the queue file. In the other order, and without the lock, the file
// could be older than the record and seem to have shrunk.
func (t *Tx) read() (*journal.Loaded, error) {
	l, err := t.store.Load()
	if err != nil {
		return nil, err
	}
	t.st = *l.Record
	if t.st.DigestEnd != t.st.Cursor { // the journal has no digest
		t.forgetDigest()
	}
	if err := t.openFile(); err != nil {
		return nil, err
	}
	if t.inFlight, err = ownDelivery(t.st.InFlight); err != nil {
		return nil, err
	}
	if t.redeliver, err = ownDelivery(t.st.Redeliver); err != nil {
		return nil, err
	}
	t.canceled, t.here = t.canceledSpans(), t.writtenHere()
	if !t.here && !t.box.opts.Adopt {
		t.st.Account = nil // what was spent elsewhere counts there
	}
	return l, t.claim()
}

// ownDelivery reads an entry of a journal record, nil for none.
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

// recorded decodes a value that a record keeps as JSON, nil for none.
func recorded[T any](record json.RawMessage, what string) (*T, error) {
	if len(record) == 0 {
		return nil, nil
	}
	v := new(T)
	if err := json.Unmarshal(record, v); err != nil {
		return nil, fmt.Errorf("read journal: %s: %w: %w", what, ErrCorrupt, err)
	}
	return v, nil
}

// kept decodes a value that a record keeps as JSON, zero for none. The record's sum was right, so another release
// wrote what cannot be decoded.
func kept[T any](record json.RawMessage) (v T) {
	if len(record) > 0 {
		_ = json.Unmarshal(record, &v)
	}
	return v
}

// claim refuses a directory whose state belongs to another inbox. If that inbox is gone and left nothing in
// flight, it was renamed.
func (t *Tx) claim() error {
	if t.st.Inbox == "" || t.st.Inbox == t.box.name {
		t.st.Inbox = t.box.name
		return nil
	}
	other := t.box.beside(t.st.Inbox)
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
