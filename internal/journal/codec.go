package journal

import (
	"bytes"
	"encoding/json"

	"heartbeat/internal/flat"
)

// members lists what a record consists of, in the order in which it is written.
// The appends follow: they are most of a long record, and are only read where
// something is to be made good.
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
	c.Raw("scheduled", &r.Scheduled)
	c.Raw("account", &r.Account)
	c.Raw("stopped", &r.Stopped)
	c.Raw("put_off", &r.PutOff)
	c.Raw("self_enqueued", &r.SelfEnqueued)
	c.Raw("reread", &r.Reread)
	c.Raw("letters", &r.Letters)
	for _, k := range recordOrder {
		if kinds[k].late && r.Ends[k] == (End{}) && !c.Reads() {
			continue
		}
		c.Int(kinds[k].end, &r.Ends[k].At)
		c.Count(kinds[k].generation, &r.Ends[k].Generation)
	}
	c.Count("queue_generation", &r.QueueGeneration)
}

// members lists what a line to append consists of.
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

// members lists what a mark consists of.
func (m *mark) members(c flat.Codec) {
	c.Int("followed", &m.Followed)
	c.String("boot", &m.Boot)
	c.Flag("handed", &m.Handed)
}

// encode is the record on one line of JSON.
func (r *Record) encode() []byte {
	var o flat.Object
	r.members(flat.To(&o))
	o.Raw("appends", encodeLines(r.Appends))
	return o.End()
}

func encodeLines(all []Line) []byte {
	if len(all) == 0 {
		return nil
	}
	b := []byte{'['}
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		var o flat.Object
		_ = all[i].members(flat.To(&o)) // only reading can fail
		b = append(b, o.End()...)
	}
	return append(b, ']')
}

// decodeRecord reads a record without its appends.
func decodeRecord(body []byte) (*Record, error) {
	m, err := flat.Parse(withoutAppends(body))
	if err != nil {
		return nil, err
	}
	r := new(Record)
	r.members(flat.From(m))
	return r, m.Err()
}

// decodeWhole reads a record with its appends.
func decodeWhole(body []byte) (*Record, error) {
	m, err := flat.Parse(body)
	if err != nil {
		return nil, err
	}
	r := new(Record)
	if r.members(flat.From(m)); m.Err() != nil {
		return nil, m.Err()
	}
	r.Appends, err = decodeLines(m.Raw("appends"))
	return r, err
}

func decodeLines(raw []byte) ([]Line, error) {
	if raw == nil {
		return nil, nil
	}
	var each []json.RawMessage
	if err := json.Unmarshal(raw, &each); err != nil {
		return nil, err
	}
	all := make([]Line, len(each))
	for i, raw := range each {
		m, err := flat.Parse(raw)
		if err == nil {
			err = all[i].members(flat.From(m))
		}
		if err == nil {
			err = m.Err()
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// largeRecord is from where on a record is read in parts, so that it is not held
// several times over.
const largeRecord = 1 << 20

// withoutAppends is a long record without its last member, which is most of it. A
// quote within a string has a backslash before it, so this finds no text.
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

func (m *mark) encode() []byte {
	var o flat.Object
	m.members(flat.To(&o))
	return o.End()
}

// decodeMark is nil where the body is not one. A member of another type reads as
// its zero value.
func decodeMark(body []byte) *mark {
	parsed, err := flat.Parse(body)
	if err != nil {
		return nil
	}
	m := new(mark)
	m.members(flat.From(parsed))
	return m
}
