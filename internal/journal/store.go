// Package journal keeps the state of one inbox, and knows nothing of what the state means for an entry.
//
// A commit is one record, one line of .inbox-journal, written and synced once. It holds the whole state and
// the lines that it adds to other files. Those files, the cursor and the entry in flight follow the record
// without a sync; a mark behind the record says that they did. If a kill or a power loss keeps them from
// following, the next process to take the lock restores them from the records.
//
//	record.go  what a record holds, and its members as they are written
//	log.go     .inbox-journal: the newest record, one more, a mark
//	store.go   all files of one inbox, the append-only ones a row each
//	commit.go  where the lines of a commit go, the commit, and what a crash left undone
//	follow.go  the other files follow it
//	queue.go   lines for the queue file, to which others append without a lock
package journal

import (
	"errors"
	"fmt"
	"path/filepath"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
	"heartbeat/internal/machine"
)

// Kind is a file to which commits add lines.
type Kind uint8

// The append-only files, in the order in which a commit's lines are written.
const (
	Results Kind = iota
	Events
	DeadLetters
	Scheduled
	Costs
	// Queue is the inbox itself. Others append to it too, so it has its own rules and no row in the table:
	// see [Store] and queue.go.
	Queue
)

// appendFile is a row of the table: how an append-only file differs from the others.
type appendFile struct {
	name string
	// end and generation are the members of a record that say how long the file is and how often it was rotated.
	end, generation string
	// synced means that lines are durable before their mark. If a line is missing despite a mark, an operator
	// removed it, and it must not come back. For other files only a mark of this boot proves that.
	synced bool
	// ours says that only heartbeat writes the file and trusts its content. A file from a copy or a
	// repository does not count.
	ours bool
	// late means that records omit the members while there is no file: earlier releases did not know the file.
	late bool
}

var kinds = [...]appendFile{
	Results:     {name: ".results.jsonl", end: "results_end", generation: "results_generation", ours: true},
	Events:      {name: ".events.jsonl", end: "events_end", generation: "events_generation", ours: true},
	DeadLetters: {name: ".dead-letter.jsonl", end: "dead_letters_end", generation: "dead_letters_generation", synced: true},
	Scheduled:   {name: ".scheduled.jsonl", end: "scheduled_end", generation: "scheduled_generation", synced: true, ours: true},
	Costs:       {name: ".costs.jsonl", end: "costs_end", generation: "costs_generation", ours: true, late: true},
}

// recordOrder is the order in which a record names the files.
var recordOrder = [...]Kind{Results, DeadLetters, Events, Scheduled, Costs}

// queueName stands for the queue file in a record.
const queueName = "queue"

// Name returns the file's name beside the inbox.
func (k Kind) Name() string {
	if k == Queue {
		return queueName
	}
	return kinds[k].name
}

// Ours returns the files that only heartbeat writes and trusts: a forged result would answer whoever waits
// for one, a forged schedule would be delivered, and forged costs would use up a limit.
func Ours() (all []Kind) {
	for k, row := range kinds {
		if row.ours {
			all = append(all, Kind(k))
		}
	}
	return all
}

// OutcomeKinds are the files that grow with every outcome, until they are trimmed.
var OutcomeKinds = [...]Kind{Results, DeadLetters, Events, Costs}

func kindOf(name string) (Kind, error) {
	if name == queueName {
		return Queue, nil
	}
	for k, row := range kinds {
		if row.name == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("it adds a line to %q, which is not a file of an inbox", name)
}

// Names of the files beside an inbox that are not append-only; for the others see [Kind.Name].
const (
	CursorName    = ".inbox-offset"
	InFlightName  = ".in-flight"
	RespondedName = ".responded"
	JournalName   = ".inbox-journal"
	LockName      = ".inbox-lock"
	// CopySuffix ends the name of a copy of an append-only file while that is trimmed.
	CopySuffix = ".trim.tmp"
)

// Names returns the names of all files beside an inbox.
func Names() []string {
	names := []string{CursorName, InFlightName, RespondedName, JournalName, LockName}
	for kind := range kinds {
		names = append(names, Kind(kind).Name())
	}
	return names
}

// ErrCorrupt means that a state file has invalid content.
var ErrCorrupt = lines.ErrCorrupt

// ErrUncertain means that a commit's sync failed, and so did undoing the commit: after a power loss the commit may or
// may not be there.
var ErrUncertain = errors.New("commit uncertain")

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

// Open names the files beside a queue file, and opens none. lock is the inbox's lock, which the caller holds; with nil
// the files are only read. warn gets sentences for a person about what was found and repaired.
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
	// Followed means that the other files show the record, or that there is no record.
	Followed bool
}

// Version tells one state of the journal from the next.
type Version struct {
	Seq    int64
	marked bool
	boot   string
}

// Load reads the last record.
func (s *Store) Load() (*Loaded, error) {
	open := disk.OpenExisting
	if s.lock == nil {
		open = disk.OpenRead
	}
	var err error
	if s.log, err = openLog(s.path(), open); err != nil {
		return nil, err
	}
	r, m, err := s.log.last()
	if err != nil {
		return nil, err
	}
	l := &Loaded{Record: r, Followed: r == nil}
	if r == nil {
		l.Record = new(Record)
	}
	l.Version.Seq = l.Record.Seq
	if s.marked = m != nil; s.marked {
		l.Version.marked, l.Version.boot = true, m.Boot
		l.Followed = l.Followed || m.Boot == s.boot
		l.Record.Handed = l.Record.Handed || m.Handed
	}
	s.last = *l.Record
	return l, nil
}

// Newest returns the present version of the journal beside a queue file.
func Newest(queue string) (v Version, err error) {
	s := Open(queue, nil, nil)
	l, err := s.Load()
	if err == nil {
		v = l.Version
	}
	return v, errors.Join(err, s.Close())
}

// Boot returns the boot of this transaction: see [machine.BootID].
func (s *Store) Boot() string { return s.boot }

func (s *Store) path() string { return filepath.Join(s.dir, JournalName) }

// Close closes the files, but does not release the lock.
func (s *Store) Close() error {
	err := errors.Join(s.log.file.Close(), s.cursor.Close(), s.inFlight.Close())
	for k := range s.files {
		err = errors.Join(err, s.files[k].Close())
	}
	return err
}

// StillLocked returns an error if the lock file was removed meanwhile: two transactions could then take back each
// other's commits.
func (s *Store) StillLocked() error {
	if err := s.lock.Check(); err != nil {
		return fmt.Errorf("another transaction may be under way, so nothing more was changed: leave the lock file alone, and try again: %w", err)
	}
	return nil
}
