package inbox

import (
	"cmp"
	"encoding/json"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/price"
)

// Result is one line of .results.jsonl: an entry that was answered.
type Result struct {
	EntryID        string                     `json:"entry_id"`
	ID             string                     `json:"id,omitempty"` // the envelope's own id
	Metadata       map[string]json.RawMessage `json:"metadata,omitempty"`
	StartOffset    int64                      `json:"start_offset"`
	EndOffset      int64                      `json:"end_offset"`
	Attempt        int                        `json:"attempt"`
	SessionID      string                     `json:"session_id,omitempty"`
	PromptID       string                     `json:"prompt_id,omitempty"`
	DeliveredAt    time.Time                  `json:"delivered_at"`
	AcknowledgedAt time.Time                  `json:"acknowledged_at"`
	// Prompt is the beginning of the text that was delivered, at most 200
	// characters. Results of releases before it was kept have none.
	Prompt string `json:"prompt,omitempty"`
	Reply  string `json:"reply"`
	// Result is what the agent handed over as the result, and Said that it said itself that
	// the entry is done: see [Verdict].
	Result string `json:"result,omitempty"`
	Said   bool   `json:"said_done,omitempty"`
	// Accepted is why the entry was set aside, if its answer came later: see [Inbox.Accept].
	Accepted Reason `json:"accepted,omitempty"`
	// BackgroundTasks are the [Task]s that the entry left running besides its
	// turns.
	BackgroundTasks json.RawMessage `json:"background_tasks,omitempty"`
	// FirstSeq is the number of the commit that delivered the entry first: the lines of
	// .costs.jsonl that belong to it have it too.
	FirstSeq int64 `json:"first_seq,omitempty"`
	// Fields are the price as far as it was known then: see [Prices].
	price.Fields
}

// Answer is what came of the entry: what its agent handed over as the result, or else the
// reply.
func (r Result) Answer() string { return cmp.Or(r.Result, r.Reply) }

// Task is something that an entry left running besides its turns.
type Task struct {
	ID          string `json:"id"`
	Type        string `json:"type,omitempty"`
	Description string `json:"description,omitempty"`
	// CutOff says that it had not ended when the entry was acknowledged.
	CutOff bool `json:"cut_off,omitempty"`
}

func resultOf(d *Delivery, reply string, now time.Time) Result {
	id, text, meta := decodeLine(d.rawBytes())
	return Result{
		EntryID: d.EntryID, ID: id, Metadata: meta,
		StartOffset: d.StartOffset, EndOffset: d.EndOffset,
		Attempt: d.Attempt, SessionID: d.SessionID, PromptID: d.PromptID,
		DeliveredAt: d.DeliveredAt, AcknowledgedAt: now, Prompt: firstCharacters(text, keptPrompt), Reply: reply,
		FirstSeq: d.first(),
	}
}

// keptPrompt is how many characters of an entry's text its result keeps. They are
// part of the record that acknowledges the entry, and so cost every turn.
const keptPrompt = 200

// firstCharacters is the beginning of the text, cut between two characters.
func firstCharacters(text string, n int) string {
	for at := range text {
		if n == 0 {
			return text[:at]
		}
		n--
	}
	return text
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
	o.Text("result", r.Result)
	if r.Said {
		o.Bool("said_done", true)
	}
	o.Text("accepted", string(r.Accepted))
	o.Raw("background_tasks", r.BackgroundTasks)
	if r.FirstSeq != 0 {
		o.Int("first_seq", r.FirstSeq)
	}
	p := r.Fields.Price()
	_ = p.Members(flat.To(&o)) // only reading can fail
	return o.End(), nil
}
