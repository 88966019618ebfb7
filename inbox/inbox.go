// Package inbox is a crash-safe queue over a JSONL file that anybody may append to.
//
// Producers write lines into the inbox, with `echo >>` or [Inbox.Append]. One consumer reads the line at the cursor
// (a byte offset), delivers it, and acknowledges it once it was answered; only then does the cursor move. If the
// consumer dies, its entry in flight is found again, and becomes a dead letter, is redelivered, or is dropped.
//
//	box, err := inbox.Open("work/inbox.jsonl", inbox.Options{})
//	tx, err := box.Begin(ctx)            // takes the inbox's lock
//	entry, err := tx.Next(inbox.Mark{})  // ErrEmpty, ErrTorn, or the next entry
//	tx.Deliver(entry, inbox.Recipient{SessionID: "s1"})
//	err = tx.Commit()                    // durable: now hand entry.Text over
//	tx.Close()
//
//	// later, with the answer, in a new transaction:
//	tx.Acknowledge("done")
//	err = tx.Commit()
//
// # Guarantee
//
// Delivery is at least once, in order, one entry at a time. [Tx.Commit] is one write to one file (the journal) and
// one sync, whatever the transaction holds. The documented state files follow the journal; if a crash keeps them from
// following, the next transaction completes them. After Commit returned nil, neither a kill nor a power loss undoes
// it. After an error nothing was committed, unless the error matches [ErrUncertain].
//
// # Files
//
// Beside the inbox, in its directory, which must hold no second inbox:
//
//	.inbox-offset       the cursor, decimal
//	.in-flight          the entry in flight, one JSON object ([Delivery])
//	.responded          there while an entry is in flight
//	.results.jsonl      one [Result] a line for each acknowledged entry
//	.dead-letter.jsonl  one [DeadLetter] a line
//	.events.jsonl       one [Event] a line
//	.scheduled.jsonl    entries that wait for their time
//	.inbox-journal      the commits, from which the files above follow
//	.inbox-lock         the advisory lock
//
// Another program may change .inbox-offset, .in-flight and .responded while no transaction is open; the next
// transaction adopts the change.
//
// Package internal/journal keeps these files, and knows nothing of entries. Package outcomes waits for what becomes
// of an entry, and reads, hands over and trims the results, dead letters and events.
//
// # Concurrency
//
// Any number of processes may use one inbox at once: each transaction holds an advisory lock that the kernel
// releases when its holder dies. Writers that append to the inbox file directly need no lock. An [Inbox] is
// safe for concurrent use; a [Tx] is not. The directory must be on a local file system.
package inbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
	"heartbeat/internal/lines"
)

// MaxLine is the longest line, in bytes without its end, that is delivered. A longer one becomes a dead letter.
const MaxLine = lines.Max

// LockName is the file beside an inbox that each transaction locks.
const LockName = journal.LockName

// JournalName is the file beside an inbox that exists once anything was committed.
const JournalName = journal.JournalName

// Errors to test for with [errors.Is].
var (
	// ErrEmpty means that no entry waits.
	ErrEmpty = errors.New("no entry waits")
	// ErrOtherText means that an entry with the message's id has another text.
	ErrOtherText = errors.New("another entry")
	// ErrTorn means that only a last line without its newline waits, which may still be written to: see [Inbox.AwaitStill].
	ErrTorn = errors.New("the last line has no newline yet")
	// ErrMore means that so much must be set aside or read that others should get the lock in between: see [Tx.Next].
	ErrMore = errors.New("there is more to set aside: commit, and begin a new transaction")
	// ErrLocked means that the inbox's lock was not free in time.
	ErrLocked = disk.ErrLocked
	// ErrCorrupt means that a state file's content is invalid.
	ErrCorrupt = journal.ErrCorrupt
	// ErrOtherInbox means that the directory's state belongs to another inbox.
	ErrOtherInbox = errors.New("state of another inbox")
	// ErrUncertain means that a commit's sync failed, and so did undoing it: it may be there after a power loss.
	ErrUncertain = journal.ErrUncertain
)

// Options are an inbox's settings. The zero value is ready to use.
type Options struct {
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
	// LockWait bounds how long [Inbox.Begin] waits for the lock; 0 means until its context is done.
	LockWait time.Duration
	// Lock is the [Inbox.LockIdentity] that [Inbox.Begin] requires, "" for any. With other locks this is not the folder
	// that the caller was started for.
	Lock string
	// Adopt accepts state files that were not written in this directory: see [Inbox.MoveForeignAside].
	Adopt bool
}

// Inbox is a queue file and the state beside it. It keeps no file open.
type Inbox struct {
	path string // of the queue file
	dir  string
	name string
	opts Options

	foreign atomic.Int64 // the number of invalid lines in .scheduled.jsonl, as last warned of: a hook may poll for weeks

	sieving sync.Mutex
	sieves  map[journal.Kind]*sieve // of the files that were searched for ids
}

// Open names an inbox and opens no file. An inbox that does not exist yet is empty. The path must not name a
// directory, FIFO or device.
func Open(path string, opts Options) (*Inbox, error) {
	if path == "" {
		return nil, errors.New("open inbox: the path is empty")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open inbox %s: %w", path, err)
	}
	if slices.Contains(journal.Names(), filepath.Base(abs)) {
		return nil, fmt.Errorf("open inbox %s: a state file beside an inbox has that name: choose another", path)
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if dir, err := os.Stat(filepath.Dir(abs)); err != nil || !dir.IsDir() {
			return nil, fmt.Errorf("open inbox %s: the directory %s does not exist: make it first", path, filepath.Dir(abs))
		}
	case err != nil:
		return nil, fmt.Errorf("open inbox %s: %w", path, err)
	case info.IsDir():
		return nil, fmt.Errorf("open inbox %s: it is a directory: name the file in it", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("open inbox %s: it is not a regular file: a queue needs one, since it is read again from an offset", path)
	}
	if err := disk.CheckRoot(abs); err != nil {
		return nil, fmt.Errorf("open inbox %s: %w", path, err)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Inbox{path: abs, dir: filepath.Dir(abs), name: filepath.Base(abs), opts: opts, sieves: map[journal.Kind]*sieve{}}, nil
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

// Options returns the settings.
func (b *Inbox) Options() Options { return b.opts }

// Path returns the absolute path of the queue file.
func (b *Inbox) Path() string { return b.path }

// ResultsPath returns the file in which each acknowledged entry leaves a [Result].
func (b *Inbox) ResultsPath() string { return b.fileOf(journal.Results) }

// DeadLetterPath returns the file of the entries that were set aside.
func (b *Inbox) DeadLetterPath() string { return b.fileOf(journal.DeadLetters) }

// LaunchLock returns the file that a launcher or host locks (see package claim), and in which it describes itself.
func (b *Inbox) LaunchLock() string { return b.beside(".launch-lock") }

// EventsPath returns the file of the rare events in an entry's life: see [Event].
func (b *Inbox) EventsPath() string { return b.fileOf(journal.Events) }

// ScheduledPath returns the file in which entries wait for their time.
func (b *Inbox) ScheduledPath() string { return b.fileOf(journal.Scheduled) }

// CostsPath returns the file in which spending is booked.
func (b *Inbox) CostsPath() string { return b.fileOf(journal.Costs) }

// Dir returns the directory of the queue file and its state.
func (b *Inbox) Dir() string { return b.dir }

func (b *Inbox) beside(name string) string { return filepath.Join(b.dir, name) }

func (b *Inbox) fileOf(k journal.Kind) string { return b.beside(k.Name()) }

func (b *Inbox) utcNow() time.Time { return b.opts.Now().UTC() }

// readLines visits the lines of an append-only file, which may not exist, from an offset on. A negative
// offset counts from the end of the file.
func (b *Inbox) readLines(k journal.Kind, from int64, visit lines.Visit) error {
	return journal.Reading(b.fileOf(k), func(f *disk.File) error {
		size := f.Info().Size
		if from < 0 {
			from = max(0, size+from)
		}
		return lines.EachRecord(io.NewSectionReader(f, from, size-from), from, visit)
	})
}

// commitSize is the most space that one commit needs, apart from a reply.
const commitSize = 64 << 10

// ErrFull means that there is no space for a commit.
var ErrFull = errors.New("the file system is full")

// Room returns how many bytes this user may still write beside the inbox (-1 if unknown), and how many the
// next commit may need. The first commit creates the journal.
func (b *Inbox) Room() (left, needed int64) {
	left, needed = -1, commitSize
	if free, err := disk.Free(b.dir); err == nil {
		left = free
	}
	if there, err := disk.Exists(b.beside(journal.JournalName)); err == nil && !there {
		needed += journal.Size
	}
	return left, needed
}

// CheckRoom returns an error that matches [ErrFull] if there is no space for a commit.
func (b *Inbox) CheckRoom() error {
	if left, needed := b.Room(); left >= 0 && left < needed {
		return fmt.Errorf("%w: %s has room for %d bytes, and %d are needed: free some space or inodes", ErrFull, b.dir, left, needed)
	}
	return nil
}
