package stream

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"heartbeat/internal/flat"
)

// Tally adds up what messages say about a session. Its fields are what is known so
// far, whenever the session ends; what a message lacks never erases them. The zero
// value is an empty tally. It is not safe for concurrent use.
type Tally struct {
	SessionID string     // from the first message of the last client that has one
	Messages  int64      // all that were added
	Usage     *Usage     // nil until one is known
	Cost      *float64   // dollars, as the client says; nil until it does
	Text      *string    // of the last assistant message; nil if that has none
	Result    *Result    // the last result line; nil before the first
	RateLimit *RateLimit // the first rate limit; nil if there was none
	// Total is the total of this client alone, a JSON number of dollars, "" until it
	// says one. It includes the cost that the session had when it went on with it.
	Total string

	past     Usage   // of the clients before this one
	pastCost float64 // of them, in dollars, as far as this client does not include it
	costed   bool    // this client has said a cost
	named    bool    // this client has named its session
	apart    bool    // that is another than the one before

	settled Usage            // of this client, up to its last result line
	turns   map[string]Usage // of assistant messages since, by message id
	counted map[string]bool  // messages that the last result line includes
	open    map[string]ToolCall
}

// Usage counts tokens. The caches' are nil where the client did not say.
type Usage struct {
	Input      int64  `json:"inputTokens"`
	Output     int64  `json:"outputTokens"`
	CacheRead  *int64 `json:"cacheReadTokens,omitempty"`
	CacheWrite *int64 `json:"cacheWriteTokens,omitempty"`
}

// Result is what a result line says of how the client ended its turn.
type Result struct {
	Subtype string // "success", "error_max_turns", ...
	IsError bool
	Turns   int64
	Text    string    // of an error, at most 4 KiB
	At      time.Time // when the line was read
}

// ToolCall is a call of a tool whose result has not come yet.
type ToolCall struct {
	ID, Name string
	Since    time.Time // when the line was read
}

// Add takes a message in that was read at a time.
func (t *Tally) Add(m Message, now time.Time) {
	t.Messages++
	if m.SessionID != "" && !t.named {
		t.apart = t.SessionID != "" && t.SessionID != m.SessionID
		t.SessionID, t.named = m.SessionID, true
	}
	message, failure := parts(m.Raw)
	switch m.Type {
	case "assistant":
		t.assistant(message, now)
	case "user":
		t.user(message)
	case "result":
		t.result(m, now)
	}
	t.limit(flat.Text(string(failure)), message, now)
}

// parts are the message in a line, and its error at the top level.
func parts(raw []byte) (message, failure []byte) {
	flat.Each(raw, func(name, value []byte) {
		switch string(name) {
		case `"message"`:
			message = value
		case `"error"`:
			failure = value
		}
	})
	if len(message) == 0 || message[0] != '{' {
		message = nil
	}
	return message, failure
}

// OpenTools are the calls whose results have not come yet, the oldest first.
func (t *Tally) OpenTools() []ToolCall {
	return slices.SortedFunc(maps.Values(t.open), func(a, b ToolCall) int { return a.Since.Compare(b.Since) })
}

func (t *Tally) assistant(message []byte, now time.Time) {
	var id string
	var usage, content []byte
	flat.Each(message, func(name, value []byte) {
		switch string(name) {
		case `"id"`:
			id = short(value)
		case `"usage"`:
			usage = value
		case `"content"`:
			content = value
		}
	})
	t.turn(id, usage)
	if len(content) == 0 || content[0] != '[' {
		return
	}
	if text := texts(content); text == "" {
		t.Text = nil
	} else {
		t.Text = &text
	}
	for part := range elements(content) {
		var call ToolCall
		kind := ""
		flat.Each(part, func(name, value []byte) {
			switch string(name) {
			case `"type"`:
				kind = short(value)
			case `"id"`:
				call.ID = short(value)
			case `"name"`:
				call.Name = short(value)
			}
		})
		if kind == "tool_use" && call.ID != "" {
			t.opened(call, now)
		}
	}
}

// maxOpen is how many open calls are remembered. A client has a few at a time.
const maxOpen = 1000

func (t *Tally) opened(call ToolCall, now time.Time) {
	if t.open == nil {
		t.open = map[string]ToolCall{}
	}
	if len(t.open) < maxOpen {
		call.Since = now
		t.open[call.ID] = call
	}
}

func (t *Tally) user(message []byte) {
	for part := range elements(member(message, "content")) {
		if id := short(member(part, "tool_use_id")); id != "" {
			delete(t.open, id)
		}
	}
}

// turn counts the usage of an assistant message, of which the client prints a line
// for each part: the last one is right.
func (t *Tally) turn(id string, usage []byte) {
	if len(usage) == 0 || usage[0] != '{' || id == "" || t.counted[id] {
		return
	}
	if t.turns == nil {
		t.turns = map[string]Usage{}
	}
	u := t.turns[id]
	u.set(usage)
	t.turns[id] = u
	t.sum()
}

// result takes what a result line says. It includes the messages before it.
func (t *Tally) result(m Message, now time.Time) {
	r := Result{Subtype: m.Subtype, At: now}
	flat.Each(m.Raw, func(name, value []byte) {
		switch string(name) {
		case `"is_error"`:
			r.IsError = string(value) == "true"
		case `"result"`:
			r.Text = first(flat.Text(string(value)), maxResultText)
		case `"num_turns"`:
			r.Turns, _ = number(value)
		case `"total_cost_usd"`:
			if cost, ok := dollars(value); ok {
				t.Cost, t.Total = t.withPast(cost), string(value)
			}
		case `"usage"`:
			if len(value) > 0 && value[0] == '{' {
				t.settle(value)
			}
		}
	})
	if !r.IsError {
		r.Text = "" // the assistant's message has it
	}
	t.Result = &r
	clear(t.open)
}

const maxResultText = 1 << 10 // characters

// settle takes the usage of a result line. A client that waits for its background tasks
// prints a result for each prompt, with the usage since the one before it; only the
// cost is that of the whole client.
func (t *Tally) settle(usage []byte) {
	var since Usage
	for _, u := range t.turns {
		since = since.Plus(u)
	}
	since.set(usage)
	t.settled = t.settled.Plus(since)
	if t.counted == nil {
		t.counted = map[string]bool{}
	}
	for id := range t.turns {
		t.counted[id] = true
	}
	clear(t.turns)
	t.sum()
}

func (t *Tally) sum() {
	sum := t.past.Plus(t.client())
	t.Usage = &sum
}

// client is what this client used.
func (t *Tally) client() Usage {
	sum := t.settled
	for _, u := range t.turns {
		sum = sum.Plus(u)
	}
	return sum
}

// withPast is the session's cost where this client says that it is cost. A client that
// goes on with a conversation counts on from the cost of the one before it (measured on
// 2.1.329), which it finds in its own files; one that does not find it begins at 0, and
// so does one with another conversation.
func (t *Tally) withPast(cost float64) *float64 {
	if !t.costed && !t.apart && cost >= t.pastCost {
		t.pastCost = 0
	}
	t.costed = true
	cost += t.pastCost
	return &cost
}

// ClientSession is the session as the last client names it, "" before it does.
func (t *Tally) ClientSession() string {
	if !t.named {
		return ""
	}
	return t.SessionID
}

// NextClient says that another client goes on with the session: the totals of its
// result lines are added to what the clients before it used.
func (t *Tally) NextClient() {
	if t.Usage != nil {
		t.past = *t.Usage
	}
	if t.Cost != nil {
		t.pastCost = *t.Cost
	}
	t.costed, t.Total, t.named, t.apart = false, "", false, false
	t.settled = Usage{}
	clear(t.turns)
	clear(t.open)
	t.Result = nil
}

// member is the value of an object's member, or nothing.
func member(object []byte, name string) (found []byte) {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	flat.Each(object, func(n, value []byte) {
		if len(n) == len(name)+2 && string(n[1:len(n)-1]) == name {
			found = value
		}
	})
	return found
}

// texts joins the texts of a message's content.
func texts(content []byte) string {
	var all bytes.Buffer
	for part := range elements(content) {
		if short(member(part, "type")) == "text" {
			all.WriteString(flat.Text(string(member(part, "text"))))
		}
	}
	return all.String()
}

func number(value []byte) (int64, bool) {
	var n float64
	if len(value) == 0 || value[0] == 'n' || json.Unmarshal(value, &n) != nil || n < 0 || n > 1<<53 {
		return 0, false
	}
	return int64(n), true
}

func dollars(value []byte) (float64, bool) {
	var n float64
	if len(value) == 0 || value[0] == 'n' || json.Unmarshal(value, &n) != nil {
		return 0, false
	}
	return n, true
}
