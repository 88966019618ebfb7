package inbox

import (
	"encoding/base64"
	"encoding/json"

	"heartbeat/internal/flat"
)

// What follows writes and reads, by hand, the shapes that their types declare
// with tags: see package flat.

func (d *Delivery) encode() ([]byte, error) {
	var o flat.Object
	o.String("entry_id", d.EntryID)
	o.Int("start_offset", d.StartOffset)
	o.Int("end_offset", d.EndOffset)
	o.String("raw_line", d.RawLine.Text)
	o.Text("raw_base64", d.RawLine.Base64)
	o.Time("delivered_at", d.DeliveredAt)
	if d.DeliveredSeq != 0 {
		o.Int("delivered_seq", d.DeliveredSeq)
	}
	o.Int("attempt", int64(d.Attempt))
	o.Text("session_id", d.SessionID)
	o.Text("prompt_id", d.PromptID)
	o.Text("inbox", d.Inbox)
	if d.Detached {
		o.Bool("detached", true)
	}
	if d.Unterminated {
		o.Bool("unterminated", true)
	}
	o.Text("text_file", d.TextFile)
	o.Raw("evidence", d.Evidence)
	if d.Failure != nil {
		f, err := encodeJSON(d.Failure)
		if err != nil {
			return nil, err
		}
		o.Raw("failure", f)
	}
	return o.End(), nil
}

func (d *Delivery) decode(m *flat.Members) error {
	*d = Delivery{
		EntryID:      m.String("entry_id"),
		StartOffset:  m.Int("start_offset"),
		EndOffset:    m.Int("end_offset"),
		RawLine:      RawLine{Text: m.String("raw_line"), Base64: m.String("raw_base64")},
		DeliveredAt:  m.Time("delivered_at"),
		DeliveredSeq: m.Int("delivered_seq"),
		Attempt:      int(m.Int("attempt")),
		SessionID:    m.String("session_id"),
		PromptID:     m.String("prompt_id"),
		Inbox:        m.String("inbox"),
		Detached:     m.Bool("detached"),
		Unterminated: m.Bool("unterminated"),
		TextFile:     m.String("text_file"),
		Evidence:     m.Raw("evidence"),
	}
	if m.Has("failure") {
		d.Failure = new(Failure)
		if err := json.Unmarshal(m.Raw("failure"), d.Failure); err != nil {
			return err
		}
	}
	return m.Err()
}

func (r Result) encode() ([]byte, error) {
	var o flat.Object
	o.String("entry_id", r.EntryID)
	o.Text("id", r.ID)
	if len(r.Metadata) > 0 {
		meta, err := encodeJSON(r.Metadata)
		if err != nil {
			return nil, err
		}
		o.Raw("metadata", meta)
	}
	o.Int("start_offset", r.StartOffset)
	o.Int("end_offset", r.EndOffset)
	o.Int("attempt", int64(r.Attempt))
	o.Text("session_id", r.SessionID)
	o.Text("prompt_id", r.PromptID)
	o.Time("delivered_at", r.DeliveredAt)
	o.Time("acknowledged_at", r.AcknowledgedAt)
	o.Text("prompt", r.Prompt)
	o.String("reply", r.Reply)
	o.Raw("background_tasks", r.BackgroundTasks)
	return o.End(), nil
}

func (s *state) encode() []byte {
	var o flat.Object
	o.Int("v", int64(s.Version))
	o.Int("seq", s.Seq)
	o.String("inbox", s.Inbox)
	o.Int("cursor", s.Cursor)
	o.Int("anchor_start", s.AnchorStart)
	o.Text("anchor_sha256", s.AnchorSum)
	o.Int("digest_start", s.DigestStart)
	o.Int("digest_end", s.DigestEnd)
	o.Text("digest", s.Digest)
	o.Int("seen_size", s.SeenSize)
	o.Int("seen_mtime_ns", s.SeenMtime)
	o.Text("seen_file", s.SeenFile)
	if s.SeenYoung {
		o.Bool("seen_young", true)
	}
	o.Text("seen_place", s.SeenPlace)
	if s.TailSum != "" {
		o.Int("tail_start", s.TailStart)
		o.Text("tail_sha256", s.TailSum)
	}
	if s.OwnSum != "" {
		o.Int("own_start", s.OwnStart)
		o.Int("own_end", s.OwnEnd)
		o.Text("own_sha256", s.OwnSum)
	}
	o.String("lock", s.Lock)
	o.Int("lock_mtime_ns", s.LockMtime)
	o.String("boot", s.Boot)
	o.Int("synced_to", s.SyncedTo)
	o.Raw("in_flight", s.InFlight)
	if s.Handed {
		o.Bool("handed", true)
	}
	o.Raw("redeliver", s.Redeliver)
	o.String("session", s.Session)
	o.Int("acknowledged", int64(s.Acknowledged))
	o.Raw("sessions", s.Sessions)
	o.Raw("paused", s.Paused)
	o.Raw("totals", s.Totals)
	o.Raw("backoff", s.Backoff)
	o.Raw("waiter", s.Waiter)
	if s.Punching != 0 {
		o.Int("punching_to", s.Punching)
	}
	o.Raw("canceled", s.Canceled)
	o.Raw("scheduled", s.Scheduled)
	o.Int("results_end", s.ResultsEnd)
	o.Int("results_generation", int64(s.ResultsGen))
	o.Int("dead_letters_end", s.DeadLettersEnd)
	o.Int("dead_letters_generation", int64(s.DeadLettersGen))
	o.Int("events_end", s.EventsEnd)
	o.Int("events_generation", int64(s.EventsGen))
	o.Int("scheduled_end", s.ScheduledEnd)
	o.Int("scheduled_generation", int64(s.ScheduledGen))
	o.Int("queue_generation", int64(s.QueueGen))
	o.Raw("appends", encodeAppends(s.Appends))
	return o.End()
}

func encodeAppends(all []appendRecord) []byte {
	if len(all) == 0 {
		return nil
	}
	b := []byte{'['}
	for i, a := range all {
		if i > 0 {
			b = append(b, ',')
		}
		var o flat.Object
		o.String("file", a.File)
		o.Int("at", a.At)
		o.Int("generation", int64(a.Generation))
		if a.Newline {
			o.Bool("newline", true)
		}
		if a.Promoted {
			o.Bool("promoted", true)
		}
		o.Text("unschedule", a.Unschedule)
		o.Raw("line", a.Line)
		o.Text("data", base64.StdEncoding.EncodeToString(a.Data))
		b = append(b, o.End()...)
	}
	return append(b, ']')
}

// decode leaves out the appends: see decodeAppends.
func (s *state) decode(m *flat.Members) error {
	*s = state{
		Version:        int(m.Int("v")),
		Seq:            m.Int("seq"),
		Inbox:          m.String("inbox"),
		Cursor:         m.Int("cursor"),
		AnchorStart:    m.Int("anchor_start"),
		AnchorSum:      m.String("anchor_sha256"),
		DigestStart:    m.Int("digest_start"),
		DigestEnd:      m.Int("digest_end"),
		Digest:         m.String("digest"),
		SeenSize:       m.Int("seen_size"),
		SeenMtime:      m.Int("seen_mtime_ns"),
		SeenFile:       m.String("seen_file"),
		SeenYoung:      m.Bool("seen_young"),
		SeenPlace:      m.String("seen_place"),
		TailStart:      m.Int("tail_start"),
		TailSum:        m.String("tail_sha256"),
		OwnStart:       m.Int("own_start"),
		OwnEnd:         m.Int("own_end"),
		OwnSum:         m.String("own_sha256"),
		Lock:           m.String("lock"),
		LockMtime:      m.Int("lock_mtime_ns"),
		Boot:           m.String("boot"),
		SyncedTo:       m.Int("synced_to"),
		InFlight:       m.Raw("in_flight"),
		Handed:         m.Bool("handed"),
		Redeliver:      m.Raw("redeliver"),
		Session:        m.String("session"),
		Acknowledged:   int(m.Int("acknowledged")),
		Sessions:       m.Raw("sessions"),
		Paused:         m.Raw("paused"),
		Totals:         m.Raw("totals"),
		Backoff:        m.Raw("backoff"),
		Waiter:         m.Raw("waiter"),
		Punching:       m.Int("punching_to"),
		Canceled:       m.Raw("canceled"),
		Scheduled:      m.Raw("scheduled"),
		ResultsEnd:     m.Int("results_end"),
		ResultsGen:     int(m.Int("results_generation")),
		DeadLettersEnd: m.Int("dead_letters_end"),
		DeadLettersGen: int(m.Int("dead_letters_generation")),
		EventsEnd:      m.Int("events_end"),
		EventsGen:      int(m.Int("events_generation")),
		ScheduledEnd:   m.Int("scheduled_end"),
		ScheduledGen:   int(m.Int("scheduled_generation")),
		QueueGen:       int(m.Int("queue_generation")),
	}
	return m.Err()
}

// decodeAppends is for making good what did not follow a commit.
func decodeAppends(m *flat.Members) (all []appendRecord, err error) {
	if raw := m.Raw("appends"); raw != nil {
		err = json.Unmarshal(raw, &all)
	}
	return all, err
}
