package journal

import "encoding/json"

// Format is the version of the records that are written.
const Format = 1

// Record is all that an inbox knows. It is read and written at every turn, by a
// process that does so once, so it is flat, and what a turn seldom needs stays
// encoded. codec.go lists the members as they are written.
type Record struct {
	Version int
	Seq     int64  // the number of the commit
	Inbox   string // base name of the queue file
	Cursor  int64  // offset of the first line that is not settled

	// The bytes from AnchorStart to the cursor had the hash AnchorSum.
	AnchorStart int64
	AnchorSum   string
	// The bytes from DigestStart to DigestEnd had this hash, kept in a form that
	// more bytes can be added to.
	DigestStart int64
	DigestEnd   int64
	Digest      string
	// The queue file as the transaction found it.
	SeenSize  int64
	SeenMtime int64
	SeenFile  string // its identity, empty if there was none
	// SeenYoung says that SeenMtime was so fresh that a later change may get the
	// same time, and SeenPlace where on the disk the file was, if that is known.
	SeenYoung bool
	SeenPlace string
	// The bytes from TailStart to SeenSize, which wait, had this hash.
	TailStart int64
	TailSum   string
	// The bytes from OwnStart to OwnEnd, which this commit itself appends to the
	// queue file, have this hash.
	OwnStart int64
	OwnEnd   int64
	OwnSum   string
	// Lock is the lock file's identity and LockMtime its time of change: together
	// they tell this directory from a copy of it.
	Lock      string
	LockMtime int64
	Boot      string // the boot of the commit
	// SyncedTo is how much of the queue file is known to survive a power loss.
	SyncedTo int64

	// InFlight is the exact content of .in-flight.
	InFlight json.RawMessage
	// Handed says that the entry in flight was handed over.
	Handed bool
	// Redeliver is an entry that was given back to the queue.
	Redeliver json.RawMessage

	// Session is the one that answered last, Acknowledged how many entries it
	// answered, and Sessions what is known of the latest ones.
	Session      string
	Acknowledged int
	Sessions     json.RawMessage

	Paused  json.RawMessage
	Totals  json.RawMessage
	Backoff json.RawMessage
	Waiter  json.RawMessage
	// Punching is the end of the hole that is being made in the queue file, 0 for
	// none.
	Punching int64
	// Canceled are ranges of the queue file, in one string.
	Canceled json.RawMessage
	// Scheduled is what was last seen of .scheduled.jsonl.
	Scheduled json.RawMessage
	// Account is what was spent, and on what the sessions spend now.
	Account json.RawMessage

	// Stopped is the turn that was stopped last because a limit was reached.
	Stopped json.RawMessage
	// PutOff is what is known of entries that were put off and wait in the queue again.
	PutOff json.RawMessage
	// Reread says which lines may have been settled before a restore.
	Reread json.RawMessage
	// Letters is how many dead letters were open when somebody counted.
	Letters json.RawMessage
	// SelfEnqueued counts the entries that agents sent, and says how many more may come.
	SelfEnqueued json.RawMessage

	// Ends says of each append-only file where it ends after this commit.
	Ends [len(kinds)]End
	// QueueGeneration goes up when the queue file turns out to be another one.
	QueueGeneration int
	// Appends are the lines that this commit adds.
	Appends []Line
}

// End is where an append-only file ends. The generation goes up when the file
// turns out to have been rotated away or truncated.
type End struct {
	At         int64
	Generation int
}

// Line is one line that belongs at an offset of a file.
type Line struct {
	Kind       Kind
	At         int64
	Generation int
	// Newline asks for one before the line, where the file lacks its last.
	Newline bool
	// Promoted says that the line comes from .scheduled.jsonl, and is to be taken
	// out there.
	Promoted bool
	// Unschedule is the id of the line of .scheduled.jsonl that this line settles,
	// and that is to be taken out there.
	Unschedule string
	// JSON is the line where it is JSON, and Data where it need not be.
	JSON json.RawMessage
	Data []byte
}

func (l Line) content() []byte {
	if l.Data != nil {
		return l.Data
	}
	return l.JSON
}

// Bytes is the line as it is written, with its end.
func (l Line) Bytes() []byte {
	c := l.content()
	b := make([]byte, 0, len(c)+2)
	if l.Newline {
		b = append(b, '\n')
	}
	return append(append(b, c...), '\n')
}

func (l Line) size() int64 { return int64(len(l.Bytes())) }

// mark says that the files followed the record of that number, in that boot: after
// a power loss the files may be older than the mark.
type mark struct {
	Followed int64
	Boot     string
	// Handed adds that the entry in flight was handed over.
	Handed bool
}

// joined is the bytes of lines, and whether each starts where the one before it
// ends.
func joined(all []Line) (b []byte, follow bool) {
	if len(all) == 1 {
		return all[0].Bytes(), true
	}
	follow = true
	for _, l := range all {
		follow = follow && l.At == all[0].At+int64(len(b))
		b = append(b, l.Bytes()...)
	}
	return b, follow
}
