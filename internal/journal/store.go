// Package journal keeps the state of one inbox, and knows nothing of what the state means for an entry.
//
// A commit is one record, one line of .inbox-journal, written and synced once. It holds the whole state and
// the lines that it adds to other files. Those files, the cursor and the entry in flight follow the record
// without a sync; a mark behind the record says that they did. If a kill or a power loss keeps them from
// following, the next process to take the lock restores them from the records.
//
//	kind.go    the append-only files, one row each
//	record.go  what a record holds, and its members as they are written
//	log.go     .inbox-journal: the newest record, one more, a mark
//	store.go   all files of one inbox
//	commit.go  where the lines of a commit go, the commit, and what a crash left undone
//	follow.go  the other files follow it
//	queue.go   lines for the queue file, to which others append without a lock
//	tail.go    reading an append-only file that grows and is rotated
package journal

import (
	"errors"
	"fmt"
	"path/filepath"

	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
)

// Store is the files of one inbox, as one transaction uses them. It is not safe for concurrent use.
type Store struct {
	dir   string
	queue string // the path of the queue file
	lock  *disk.Lock
	warn  func(format string, args ...any)
	boot  string

	log      *log
	last     Record // the last record of the journal
	marked   bool   // a mark of any boot follows it
	cursor   File
	inFlight File
	files    [len(kinds)]File

	signed   bool // .responded exists
	behind   bool // some lines of the last commit are not in their places yet
	followed bool // the other files show the last commit
	changed  bool // see Changed
	// appended is where the lines of the last commit are in the queue file.
	appended []Span
}

// Span is a byte range of the queue file.
type Span struct{ Start, End int64 }

// Open names the files beside a queue file, and opens none. lock is the inbox's lock, which the caller holds;
// with nil the files are only read. warn is given sentences, for a person, about what was found and repaired.
func Open(queue string, lock *disk.Lock, warn func(format string, args ...any)) *Store {
	s := &Store{dir: filepath.Dir(queue), queue: queue, lock: lock, warn: warn, boot: machine.BootID(), log: &log{}}
	s.cursor, s.inFlight = s.file(CursorName), s.file(InFlightName)
	for k, row := range kinds {
		s.files[k] = s.file(row.name)
	}
	return s
}

func (s *Store) file(name string) File {
	return File{path: filepath.Join(s.dir, name), readOnly: s.lock == nil}
}

// Cursor returns the file .inbox-offset.
func (s *Store) Cursor() *File { return &s.cursor }

// InFlight returns the file .in-flight.
func (s *Store) InFlight() *File { return &s.inFlight }

// File returns an append-only file.
func (s *Store) File(k Kind) *File { return &s.files[k] }

// Responded reports whether .responded exists.
func (s *Store) Responded() (bool, error) {
	there, err := disk.Exists(filepath.Join(s.dir, RespondedName))
	s.signed = there && err == nil
	return there, err
}

// Loaded is the last record of the journal.
type Loaded struct {
	Record  *Record
	Version Version
	// Settled says that the other files show the record, or that there is none.
	Settled bool
}

// Version tells one state of the journal from the next.
type Version struct {
	Seq    int64
	marked bool
	boot   string
}

func versionOf(r *Record, m *mark) (v Version) {
	if r != nil {
		v.Seq = r.Seq
	}
	if m != nil {
		v.marked, v.boot = true, m.Boot
	}
	return v
}

// Load reads the last record.
func (s *Store) Load() (*Loaded, error) {
	open := disk.OpenExisting
	if s.lock == nil {
		open = disk.OpenRead
	}
	var err error
	if s.log, err = openLog(s.path(), open); err != nil {
		s.log = &log{}
		return nil, err
	}
	r, m, err := s.log.last()
	if err != nil {
		return nil, err
	}
	l := &Loaded{Record: r, Version: versionOf(r, m), Settled: r == nil}
	if r == nil {
		l.Record = new(Record)
	}
	if s.marked = m != nil; s.marked {
		l.Settled = l.Settled || m.Boot == s.boot
		l.Record.Handed = l.Record.Handed || m.Handed
	}
	s.last = *l.Record
	return l, nil
}

// Newest returns the present version of the journal beside a queue file.
func Newest(queue string) (Version, error) {
	l, err := openLog(filepath.Join(filepath.Dir(queue), JournalName), disk.OpenRead)
	if err != nil {
		return Version{}, err
	}
	r, m, err := l.last()
	return versionOf(r, m), errors.Join(err, l.close())
}

// Boot returns the boot of this transaction: see [machine.BootID].
func (s *Store) Boot() string { return s.boot }

func (s *Store) path() string { return filepath.Join(s.dir, JournalName) }

// Close closes the files, but does not release the lock.
func (s *Store) Close() error {
	err := errors.Join(s.log.close(), s.cursor.Close(), s.inFlight.Close())
	for k := range s.files {
		err = errors.Join(err, s.files[k].Close())
	}
	return err
}

// StillLocked returns an error if the lock file was removed meanwhile. Otherwise two transactions could take
// back each other's commits.
func (s *Store) StillLocked() error {
	if err := s.lock.Check(); err != nil {
		return fmt.Errorf("another transaction may be under way, so nothing more was changed: leave the lock file alone, and try again: %w", err)
	}
	return nil
}
