package inbox

import (
	"heartbeat/internal/flat"
)

// What follows writes and reads, by hand, the shapes that their types declare
// with tags: see package flat.

// members lists what an entry in flight consists of, in the order in which it is
// written.
func (d *Delivery) members(c flat.Codec) error {
	c.String("entry_id", &d.EntryID)
	c.Int("start_offset", &d.StartOffset)
	c.Int("end_offset", &d.EndOffset)
	c.String("raw_line", &d.RawLine.Text)
	c.Text("raw_base64", &d.RawLine.Base64)
	c.Time("delivered_at", &d.DeliveredAt)
	c.NonZero("delivered_seq", &d.DeliveredSeq)
	c.Count("attempt", &d.Attempt)
	c.Text("session_id", &d.SessionID)
	c.Text("prompt_id", &d.PromptID)
	c.Text("inbox", &d.Inbox)
	c.Flag("detached", &d.Detached)
	c.Flag("unterminated", &d.Unterminated)
	c.Text("text_file", &d.TextFile)
	c.Raw("evidence", &d.Evidence)
	return flat.Pointer(c, "failure", &d.Failure)
}

func (d *Delivery) encode() ([]byte, error) {
	var o flat.Object
	err := d.members(flat.To(&o))
	return o.End(), err
}

func (d *Delivery) decode(m *flat.Members) error {
	*d = Delivery{}
	if err := d.members(flat.From(m)); err != nil {
		return err
	}
	return m.Err()
}

func (r Result) encode() ([]byte, error) {
	var o flat.Object
	o.String("entry_id", r.EntryID)
	o.Text("id", r.ID)
	if len(r.Metadata) > 0 {
		meta, err := flat.JSON(r.Metadata)
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
