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
	"heartbeat/internal/host"
)

// Tx is a transaction: it holds the inbox's lock, shows one state, and changes
// it in memory until Commit. It is not safe for concurrent use.
type Tx struct {
	box     *Inbox
	lock    *disk.Lock
	file    *disk.File // the queue file; nil when there is none
	journal *journal
	boot    string

	cursorFile, inFlightFile, results, deadLetters stateFile

	st        state
	inFlight  *Delivery
	redeliver *Delivery
	responded bool
	stale     *Delivery
	touched   bool

	dirty    bool
	pending  []pendingAppend
	warnings []string
	// appendedEnd is where the last line that was appended to the queue ends.
	appendedEnd int64
}

// Begin takes the inbox's lock, waiting for [Options].LockWait at most or
// until ctx is done (then the error matches [ErrLocked]), and reads the state. What a killed transaction left
// undone is done first. Close the transaction in any case.
func (b *Inbox) Begin(ctx context.Context) (*Tx, error) {
	lock, err := b.lock(ctx)
	if err != nil {
		return nil, err
	}
	t := &Tx{
		box: b, lock: lock, journal: &journal{}, boot: host.BootID(),
		cursorFile: b.state(cursorName), inFlightFile: b.state(inFlightName),
		results: b.state(resultsName), deadLetters: b.state(deadLetterName),
	}
	if err := t.load(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Close gives the lock back. What was not committed is forgotten.
func (t *Tx) Close() error {
	if t.lock == nil {
		return nil
	}
	err := errors.Join(t.file.Close(), t.journal.close(),
		t.cursorFile.close(), t.inFlightFile.close(), t.results.close(), t.deadLetters.close(),
		t.lock.Release())
	t.lock = nil
	return err
}

func (t *Tx) load() error {
	var err error
	if err := t.openFile(); err != nil {
		return err
	}
	t.journal, err = openJournal(t.box.file(journalName))
	if err != nil {
		t.journal = &journal{}
		return err
	}
	st, mark, err := t.journal.last()
	if err != nil {
		return err
	}
	if st != nil {
		t.st = *st
	}
	settled := st == nil || (mark != nil && mark.Boot == t.boot)
	if t.inFlight, err = ownDelivery(t.st.InFlight); err != nil {
		return err
	}
	if t.redeliver, err = ownDelivery(t.st.Redeliver); err != nil {
		return err
	}
	if err := t.claim(); err != nil {
		return err
	}
	if !settled {
		if err := t.replay(mark != nil); err != nil {
			return err
		}
		if err := t.openFile(); err != nil { // what was missing of it is there now
			return err
		}
		t.responded = t.inFlight != nil
	} else if err := t.adopt(); err != nil {
		return err
	}
	if err := t.recognise(); err != nil || !t.touched {
		return err
	}
	return t.Commit()
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
