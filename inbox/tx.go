package inbox

import (
	"fmt"
	"time"

	"heartbeat/internal/disk"
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
	// settling says that the files do not show the last commit yet. Only a view
	// sees that.
	settling bool

	st        journal.Record // the last record, and what the next one changes
	inFlight  *Delivery
	redeliver *Delivery
	offered   *offer // of the entry that Next returned last, until it is delivered
	responded bool   // as it was found
	stale     *Delivery
	noticed   bool // the look of the file is to be committed at once
	// lastLine is where the line before the cursor starts, if the cursor was
	// moved.
	lastLine int64
	reanchor bool
	totals   *Totals // nil until they are needed
	over     string  // the session whose turn ends in this transaction
	due      int64   // when the next scheduled entry is due, 0 for none
	notMoved error   // what kept the scheduled entries that are due from the inbox
	// here says that the state was written in this place, and so is believed.
	here bool
	// named is the number of the delivery that somebody else's .in-flight names, 0
	// for none.
	named int64
	// justFound says that this transaction warned of what rereading tells.
	justFound bool
	looked    *lookup // while lines are read that may have been settled
	// replacedWhy says why the queue file was found to be another file.
	replacedWhy string

	account        *Account // nil until it is needed
	accountChanged bool
	positions      map[string]position // see Position
	worked         time.Duration       // see Worked
	readings       map[string]*Reading // of this transaction

	closed bool
	// person says that the next commit brings what a person may want to hear of, and
	// brought that a commit did.
	person, brought bool
	dirty           bool
	pending         []journal.Line
	warnings        []string
	// aside are the entries that were set aside without delivery; the numbers are
	// their lines, and their bytes in the journal.
	aside                  []SetAside
	asideLines, asideBytes int
	trying                 bool           // see tryLarge
	forget                 []string       // files that nothing needs after the commit
	canceled               []canceledSpan // see canceledSpans
	canceledRead           bool
	chunk                  []byte // of the queue file, while it is hashed
}

// Seq is the number of the commit that this transaction would make next. A later
// commit has a greater number, whatever the clock says, as long as the journal
// exists.
func (t *Tx) Seq() int64 { return t.st.Seq + 1 }

// newTx is a transaction, or a view if there is no lock.
func (b *Inbox) newTx(lock *disk.Lock) *Tx {
	t := &Tx{box: b, lock: lock}
	t.store = journal.Open(b.path, lock, t.warn)
	t.boot = t.store.Boot()
	return t
}

// viewing reports whether nothing may be changed.
func (t *Tx) viewing() bool { return t.lock == nil }

func (t *Tx) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// Warnings are sentences, for a person, about what was found and repaired.
func (t *Tx) Warnings() []string { return t.warnings }

// NeedsPerson reports whether a commit of this transaction has brought what a person may
// want to hear of: a dead letter, a pause, or a session that asks.
func (t *Tx) NeedsPerson() bool { return t.brought }

// Dirty reports whether there is anything to commit.
func (t *Tx) Dirty() bool { return t.dirty }

// Cursor is the byte offset of the first line not yet settled.
func (t *Tx) Cursor() int64 { return t.st.Cursor }

// InFlight is the entry that was delivered and not settled, or nil.
func (t *Tx) InFlight() *Delivery { return t.inFlight }

// Responded reports whether .responded existed: heartbeat-rs's sign that the
// entry in flight is answered when the consumer comes back.
func (t *Tx) Responded() bool { return t.responded }

// Stale is an entry that .in-flight named although the cursor was past it. A
// heartbeat-rs that is killed while it acknowledges leaves that. The entry was
// answered, and Commit removes the file.
func (t *Tx) Stale() *Delivery { return t.stale }
