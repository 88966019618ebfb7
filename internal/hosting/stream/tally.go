package stream

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"heartbeat/internal/claude"
	"heartbeat/internal/flat"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/words"
)

// Tally adds up what messages report about a session. Its fields hold what is known so far; a message that
// lacks something never erases it. The zero value is an empty tally. It is not safe for concurrent use.
type Tally struct {
	SessionID string             // from the last client's first message that has one
	Messages  int64              // how many were added
	Usage     *folder.TokenUsage // nil until one is known
	Cost      *float64           // dollars, as the client counts; nil until it reports a cost
	Text      *string            // of the last assistant message; nil if that has none
	Result    *folder.Result     // the last result line; nil before the first
	ErrorText string             // the error text of Result
	RateLimit *folder.RateLimit  // the first rate limit; nil if there was none

	past     folder.TokenUsage // of earlier clients
	pastCost float64           // of earlier clients, in dollars, unless this client's cost includes it
	costed   bool              // this client has reported a cost
	named    bool              // this client has named its session
	apart    bool              // this client's session is not the earlier client's

	finished folder.TokenUsage            // of this client, up to its last result line
	turns    map[string]folder.TokenUsage // of assistant messages since, by message ID
	counted  map[string]bool              // messages that the last result line includes
	open     map[string]ToolCall
	opened   map[string]bool // files that successful calls named
}

// ToolCall is a tool call whose result has not come yet.
type ToolCall struct {
	ID, Name string
	Since    time.Time // when the line was read
	Files    []string  // the files of long texts that it names
}

// Add adds a message that was read at now.
func (t *Tally) Add(m Message, now time.Time) {
	t.Messages++
	if m.SessionID != "" && !t.named {
		t.apart = t.SessionID != "" && t.SessionID != m.SessionID
		t.SessionID, t.named = m.SessionID, true
	}
	line := valueOf(m.Raw)
	message := line.Get("message")
	switch m.Type {
	case "assistant":
		t.assistant(message, now)
	case "user":
		for _, part := range message.Get("content").Items() {
			t.closeCall(short(part.Get("tool_use_id")), part.Get("is_error") == "true")
		}
	case "result":
		t.result(m.Subtype, line, now)
	}
	t.limit(line.Get("error").Text(), message, now)
}

// OpenTools lists the calls whose results have not come yet, oldest first.
func (t *Tally) OpenTools() []ToolCall {
	return slices.SortedFunc(maps.Values(t.open), func(a, b ToolCall) int { return a.Since.Compare(b.Since) })
}

// maxOpen is how many open calls are remembered. A client has a few at a time.
const maxOpen = 1000

func (t *Tally) assistant(message flat.Value, now time.Time) {
	t.turn(short(message.Get("id")), message.Get("usage"))
	content := message.Get("content")
	if content == "" || content[0] != '[' {
		return
	}
	t.Text = nil
	if text := texts(content); text != "" {
		t.Text = &text
	}
	for _, part := range content.Items() {
		if short(part.Get("type")) != "tool_use" {
			continue
		}
		call := ToolCall{ID: short(part.Get("id")), Name: short(part.Get("name")), Since: now, Files: textFiles(part.Get("input"))}
		if call.ID != "" && len(t.open) < maxOpen {
			put(&t.open, call.ID, call)
		}
	}
}

// turn counts the usage of an assistant message. Each of its parts has a line, and the last has the right usage.
func (t *Tally) turn(id string, usage flat.Value) {
	if usage == "" || usage[0] != '{' || id == "" || t.counted[id] {
		return
	}
	u := t.turns[id]
	setUsage(&u, usage)
	put(&t.turns, id, u)
	t.sum()
}

// put sets an element of a map, which it makes if need be.
func put[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}

// result applies a result line, whose usage includes that of the messages before it.
func (t *Tally) result(subtype string, line flat.Value, now time.Time) {
	turns, _ := number(line.Get("num_turns"))
	t.Result = &folder.Result{ResultLine: folder.ResultLine{Subtype: subtype, IsError: line.Get("is_error") == "true", NumTurns: int(turns)}, At: now.UTC()}
	if t.ErrorText = ""; t.Result.IsError { // otherwise the assistant's message has it
		reasons := []string{line.Get("result").Text()}
		for _, v := range line.Get("errors").Items() { // without a turn there is no result
			reasons = append(reasons, v.Text())
		}
		text, _ := folder.Cut(strings.TrimSpace(strings.Join(reasons, " ")), maxResultText)
		t.ErrorText = strings.Clone(text)
	}
	if cost, err := strconv.ParseFloat(string(line.Get("total_cost_usd")), 64); err == nil {
		// A client that continues a conversation adds to the earlier client's cost, which is in its own files
		// (measured on 2.1.329). Without that file, or in another conversation, the client begins at 0.
		if !t.costed && !t.apart && cost >= t.pastCost {
			t.pastCost = 0
		}
		t.costed = true
		t.Cost = new(cost + t.pastCost)
	}
	if usage := line.Get("usage"); usage != "" && usage[0] == '{' {
		t.addUsage(usage)
	}
	clear(t.open)
}

const maxResultText = 1 << 10

// addUsage adds the usage of a result line. A client that waits for its background tasks prints a result for each
// prompt, with the usage since the previous result; only the cost is the whole client's.
func (t *Tally) addUsage(usage flat.Value) {
	var since folder.TokenUsage
	for _, u := range t.turns {
		since = sumOf(since, u)
	}
	setUsage(&since, usage)
	t.finished = sumOf(t.finished, since)
	for id := range t.turns {
		put(&t.counted, id, true)
	}
	clear(t.turns)
	t.sum()
}

func (t *Tally) sum() {
	sum := sumOf(t.past, t.finished)
	for _, u := range t.turns {
		sum = sumOf(sum, u)
	}
	t.Usage = &sum
}

// ClientSession returns the session that the last client has named, "" before it names one.
func (t *Tally) ClientSession() string {
	if !t.named {
		return ""
	}
	return t.SessionID
}

// NextClient prepares for another client of the session, whose result lines add to what earlier clients used.
func (t *Tally) NextClient() {
	if t.Usage != nil {
		t.past = *t.Usage
	}
	if t.Cost != nil {
		t.pastCost = *t.Cost
	}
	t.costed, t.named, t.apart = false, false, false
	t.finished = folder.TokenUsage{}
	clear(t.turns)
	clear(t.open)
	t.Result, t.ErrorText = nil, ""
}

// texts joins the texts of a message's content, up to what a report may hold.
func texts(content flat.Value) string {
	all := &words.Head{Most: folder.MaxOutput + utf8.UTFMax} // a little more, to show that it was cut
	for _, part := range content.Items() {
		if text := part.Get("text"); !all.Over && short(part.Get("type")) == "text" && text.IsString() {
			_ = flat.WriteText(all, unsafe.Slice(unsafe.StringData(string(text)), len(text))) // it is valid
		}
	}
	return all.String()
}

func number(v flat.Value) (int64, bool) {
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil || n < 0 || n > 1<<53 {
		return 0, false
	}
	return int64(n), true
}

func sumOf(u, v folder.TokenUsage) folder.TokenUsage {
	return folder.TokenUsage{
		Input: u.Input + v.Input, Output: u.Output + v.Output,
		CacheRead: plus(u.CacheRead, v.CacheRead), CacheWrite: plus(u.CacheWrite, v.CacheWrite),
	}
}

func plus(a, b *int64) *int64 {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return new(*a + *b)
}

func setUsage(u *folder.TokenUsage, object flat.Value) {
	set := func(name string, to func(int64)) {
		if n, ok := number(object.Get(name)); ok {
			to(n)
		}
	}
	set("input_tokens", func(n int64) { u.Input = n })
	set("output_tokens", func(n int64) { u.Output = n })
	set("cache_read_input_tokens", func(n int64) { u.CacheRead = &n })
	set("cache_creation_input_tokens", func(n int64) { u.CacheWrite = &n })
}

// limited matches the error of a rate limit. Only errors at the top level of a message are checked: a
// tool's result or the model itself may mention rate limits.
var limited = regexp.MustCompile(`(?i)rate[-_ ]?limit|429|usage limit|quota exceeded|too many requests`)

const maxDetail = 200

func (t *Tally) limit(detail string, message flat.Value, now time.Time) {
	if detail == "" || !limited.MatchString(detail) {
		return
	}
	if t.RateLimit == nil {
		t.RateLimit = &folder.RateLimit{Detail: fmt.Sprintf("%.*s", maxDetail, detail), Source: "ndjson-result", At: now.UTC()}
	}
	if t.RateLimit.ResetsAt != nil {
		return
	}
	for _, text := range []string{detail, texts(message.Get("content"))} {
		if at, ok := claude.LimitEnd(text, now); ok {
			t.RateLimit.ResetsAt = new(at.UTC())
			return
		}
	}
}
