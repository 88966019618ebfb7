package journal

import (
	"bytes"
	"cmp"
	"encoding/json"

	"heartbeat/internal/flat"
)

// Format is the version of the records that are written.
const Format = 1

// Record is the whole state of an inbox. Every turn reads and writes it in a new process, so it is flat, and
// members that a turn seldom needs stay encoded.
type Record struct {
	Version int
	Seq     int64  // the number of the commit
	Inbox   string // base name of the queue file
	Cursor  int64  // offset of the first line that is not settled
	Sighting
	Origin
	Entries
	Workers
	Holds

	Totals json.RawMessage
	// Account is what was spent, and the uncharged turns of the sessions.
	Account json.RawMessage
	// Reread names the lines that may have been settled before a restore.
	Reread json.RawMessage
	// Replaced is when and why the queue file was found to be another file.
	Replaced json.RawMessage
	// SelfEnqueued counts the entries that agents sent, and how many more are admitted.
	SelfEnqueued json.RawMessage
	// Checks names the checks of the wiring that reported last, separated by commas.
	Checks string

	// Ends are where each append-only file ends after this commit.
	Ends [len(kinds)]End
	// Appends are the lines that this commit adds.
	Appends []Line
}

// Sighting is the queue file as the transaction found it, and what tells it from another file.
type Sighting struct {
	// AnchorSum is the hash of the bytes from AnchorStart to the cursor.
	AnchorStart int64
	AnchorSum   string
	// Digest is the hash of the bytes from DigestStart to DigestEnd, in a form to which more bytes can be added.
	DigestStart int64
	DigestEnd   int64
	Digest      string
	SeenSize    int64
	SeenMtime   int64
	SeenFile    string // its identity, "" if there was none
	// SeenYoung says that SeenMtime was so fresh that a later change may get the same time. SeenPlace is
	// where on the disk the file was, if known.
	SeenYoung bool
	SeenPlace string
	// TailSum is the hash of the waiting bytes from TailStart to SeenSize.
	TailStart int64
	TailSum   string
	// OwnSum is the hash of the bytes from OwnStart to OwnEnd, which this commit itself appends to the queue file.
	OwnStart int64
	OwnEnd   int64
	OwnSum   string
	// SyncedTo is how much of the queue file is known to survive a power loss.
	SyncedTo int64
	// Punching is the end of the hole that is being made in the queue file, 0 for none.
	Punching int64
	// Reached is since when the waiting lines have been in the queue file.
	Reached json.RawMessage
	// QueueGeneration increases when the queue file turns out to be another file.
	QueueGeneration int
}

// Origin is where the record was written.
type Origin struct {
	// Lock is the lock file's identity and LockMtime its modification time: together they tell this directory
	// from a copy of it.
	Lock      string
	LockMtime int64
	Boot      string // the boot of the commit
}

// Entries are the entries that do not simply wait behind the cursor.
type Entries struct {
	// InFlight is the exact content of .in-flight.
	InFlight json.RawMessage
	// Handed says that the entry in flight was handed over.
	Handed bool
	// Redeliver is an entry that was given back to the queue.
	Redeliver json.RawMessage
	// PutOff keeps the deliveries of entries that were put off and wait in the queue again.
	PutOff json.RawMessage
	// Canceled holds ranges of the queue file, in one string.
	Canceled json.RawMessage
}

// Workers are the sessions that work, or have worked, on the inbox.
type Workers struct {
	// Session is the session that answered last, Acknowledged the number of entries that it answered, and
	// Sessions what is known of the latest sessions.
	Session      string
	Acknowledged int
	Sessions     json.RawMessage
	Waiter       json.RawMessage
	// Stopped holds turns that go on without their entry, such as those stopped at a limit.
	Stopped json.RawMessage
}

// Holds are what keeps entries from being delivered.
type Holds struct {
	Paused  json.RawMessage
	Backoff json.RawMessage
	// Stopping is a process that is about to end.
	Stopping json.RawMessage
}

// End is where an append-only file ends. Generation increases when the file turns out to have been rotated
// away or truncated.
type End struct {
	At         int64
	Generation int
}

// Line is one line with its offset in a file.
type Line struct {
	Kind       Kind
	At         int64
	Generation int
	// Newline puts a newline before the line, because the file lacks its last one.
	Newline bool
	// Promoted says that the line comes from .scheduled.jsonl, from which it must be removed.
	Promoted bool
	// Unschedule is the id of the line of .scheduled.jsonl that this line settles and that must be removed.
	Unschedule string
	// JSON is the line if it is JSON; otherwise Data is.
	JSON json.RawMessage
	Data []byte
}

func (l Line) content() []byte {
	if l.Data != nil {
		return l.Data
	}
	return l.JSON
}

// Bytes returns the line as it is written, with its end.
func (l Line) Bytes() []byte {
	c := l.content()
	b := make([]byte, 0, len(c)+2)
	if l.Newline {
		b = append(b, '\n')
	}
	return append(append(b, c...), '\n')
}

func (l Line) size() int64 { return int64(len(l.Bytes())) }

// mark means that the files followed the record Followed. That holds within the mark's boot: after a power loss the
// files may be older than the mark.
type mark struct {
	Followed int64
	Boot     string
	// Handed says that the entry in flight was handed over.
	Handed bool
}

// joined returns the bytes of lines, and whether each line starts where the previous one ends.
func joined(all []Line) (b []byte, follow bool) {
	follow = true
	for _, l := range all {
		follow = follow && l.At == all[0].At+int64(len(b))
		b = append(b, l.Bytes()...)
	}
	return b, follow
}

// members lists the members of a record in the order in which they are written, except the appends, which come last:
// they are most of a long record, and are read only when lines must be restored.
func (r *Record) members(c flat.Codec) {
	c.Count("v", &r.Version)
	c.Int("seq", &r.Seq)
	c.String("inbox", &r.Inbox)
	c.Int("cursor", &r.Cursor)
	c.Int("anchor_start", &r.AnchorStart)
	c.Text("anchor_sha256", &r.AnchorSum)
	c.Int("digest_start", &r.DigestStart)
	c.Int("digest_end", &r.DigestEnd)
	c.Text("digest", &r.Digest)
	c.Int("seen_size", &r.SeenSize)
	c.Int("seen_mtime_ns", &r.SeenMtime)
	c.Text("seen_file", &r.SeenFile)
	c.Flag("seen_young", &r.SeenYoung)
	c.Text("seen_place", &r.SeenPlace)
	if c.Reads() || r.TailSum != "" {
		c.Int("tail_start", &r.TailStart)
		c.Text("tail_sha256", &r.TailSum)
	}
	if c.Reads() || r.OwnSum != "" {
		c.Int("own_start", &r.OwnStart)
		c.Int("own_end", &r.OwnEnd)
		c.Text("own_sha256", &r.OwnSum)
	}
	c.String("lock", &r.Lock)
	c.Int("lock_mtime_ns", &r.LockMtime)
	c.String("boot", &r.Boot)
	c.Int("synced_to", &r.SyncedTo)
	c.Raw("in_flight", &r.InFlight)
	c.Flag("handed", &r.Handed)
	c.Raw("redeliver", &r.Redeliver)
	c.String("session", &r.Session)
	c.Count("acknowledged", &r.Acknowledged)
	c.Raw("sessions", &r.Sessions)
	c.Raw("paused", &r.Paused)
	c.Raw("totals", &r.Totals)
	c.Raw("backoff", &r.Backoff)
	c.Raw("waiter", &r.Waiter)
	c.NonZero("punching_to", &r.Punching)
	c.Raw("canceled", &r.Canceled)
	c.Raw("account", &r.Account)
	c.Raw("stopped", &r.Stopped)
	c.Raw("put_off", &r.PutOff)
	c.Raw("self_enqueued", &r.SelfEnqueued)
	c.Text("checks", &r.Checks)
	c.Raw("reread", &r.Reread)
	c.Raw("stopping", &r.Stopping)
	c.Raw("reached", &r.Reached)
	c.Raw("replaced", &r.Replaced)
	for _, k := range recordOrder {
		if kinds[k].late && r.Ends[k] == (End{}) && !c.Reads() {
			continue
		}
		c.Int(kinds[k].end, &r.Ends[k].At)
		c.Count(kinds[k].generation, &r.Ends[k].Generation)
	}
	c.Count("queue_generation", &r.QueueGeneration)
}

func (l *Line) members(c flat.Codec) (err error) {
	name := l.Kind.Name()
	c.String("file", &name)
	if c.Reads() {
		if l.Kind, err = kindOf(name); err != nil {
			return err
		}
	}
	c.Int("at", &l.At)
	c.Count("generation", &l.Generation)
	c.Flag("newline", &l.Newline)
	c.Flag("promoted", &l.Promoted)
	c.Text("unschedule", &l.Unschedule)
	c.Raw("line", &l.JSON)
	return c.Bytes("data", &l.Data)
}

func (m *mark) members(c flat.Codec) {
	c.Int("followed", &m.Followed)
	c.String("boot", &m.Boot)
	c.Flag("handed", &m.Handed)
}

func (r *Record) encode() []byte {
	var o flat.Object
	r.members(flat.To(&o))
	if len(r.Appends) == 0 {
		return o.End()
	}
	o.Raw("appends", flat.List(r.Appends, func(b []byte, l *Line) []byte {
		var line flat.Object
		_ = l.members(flat.To(&line)) // only reading can fail
		return append(b, line.End()...)
	}))
	return o.End()
}

// decodeRecord reads a record, its appends only if whole is set.
func decodeRecord(body []byte, whole bool) (*Record, error) {
	if !whole {
		body = withoutAppends(body)
	}
	m, err := flat.Parse(body)
	if err != nil {
		return nil, err
	}
	r := new(Record)
	r.members(flat.From(m))
	if err := m.Err(); err != nil || !whole {
		return r, err
	}
	for _, raw := range m.Value("appends").Items() {
		var l Line
		m, err := flat.Parse([]byte(raw))
		if err == nil {
			err = cmp.Or(l.members(flat.From(m)), m.Err())
		}
		if err != nil {
			return r, err
		}
		r.Appends = append(r.Appends, l)
	}
	return r, nil
}

// largeRecord is the size from which a record is read in parts, to avoid holding it several times.
const largeRecord = 1 << 20

// withoutAppends strips a long record of its last member, which is most of it. The search cannot match inside
// a string, where a quote has a backslash before it.
func withoutAppends(body []byte) []byte {
	if len(body) < largeRecord {
		return body
	}
	i := bytes.Index(body, []byte(`,"appends":[`))
	if i < 0 || !bytes.Contains(body[:i], []byte(`,"queue_generation":`)) {
		return body // written in another order
	}
	return append(bytes.Clone(body[:i]), '}')
}

var markStart = []byte(`{"followed":`)

func isMark(body []byte) bool { return bytes.HasPrefix(body, markStart) }

// decodeMark returns nil if the body is not a mark. A member of the wrong type reads as its zero value.
func decodeMark(body []byte) *mark {
	parsed, err := flat.Parse(body)
	if err != nil {
		return nil
	}
	m := new(mark)
	m.members(flat.From(parsed))
	return m
}
