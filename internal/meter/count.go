package meter

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/price"
)

// count reads what the transcripts have since.
func (s *State) count(limit int64) error {
	err := follow(s.Transcript, &s.Read, limit, s.replaced, s.line)
	if threadOf(filepath.Base(s.Transcript)) != "" {
		s.countRollouts(limit)
	} else {
		s.countAgents(limit)
	}
	return err
}

// replaced makes all that was counted one part: the marks are of a transcript that is
// there no longer. What the new one has already may have been counted, and is not.
func (s *State) replaced() {
	all := part{from: -1}
	for _, p := range s.parts {
		all.own = all.own.Plus(p.own)
	}
	for i := range s.recent {
		s.recent[i].part = -1
	}
	s.parts, s.shares, s.summary = []part{all}, nil, min(s.summary, -1)
}

// move takes another path for the transcript: of a session that was resumed in another
// folder. What it has up to where the old one was read is the same.
func (s *State) move(path string) {
	if path == "" || path == s.Transcript {
		return
	}
	s.Transcript = path
}

// line counts a line of the session's own transcript.
func (s *State) line(line []byte, at int64) {
	if !mayCount(line) {
		return
	}
	l := flat.Begun(line)
	switch l.String("type") {
	case "assistant":
		if model := s.request(l, len(s.parts)-1, 0); model != "" {
			s.Model = model
		}
	case "user":
		if !l.Bool("isSidechain") && !l.Bool("isCompactSummary") && !isToolResult(l) {
			s.begin(l, at)
		}
	case "system":
		if l.String("subtype") == "compact_boundary" {
			s.summarised(l, at)
		}
	case "cost-state":
		if total, err := price.DollarsOf(string(l.Value("totalCostUSD"))); err == nil && total >= 0 {
			s.state(total)
		}
	default:
		s.rollout(l, at)
	}
}

// begin begins a part with a line at a position: the model was given something.
func (s *State) begin(l *flat.Members, at int64) {
	if at > s.last().from {
		s.parts = append(s.parts, part{from: at, at: timeOf(l)})
		s.takeUp()
	}
}

// mayCount spares most lines from being parsed.
func mayCount(line []byte) bool {
	for _, word := range [...]string{`"assistant"`, `"user"`, `"cost-state"`, `"compact_boundary"`, `"token_usage_record"`, `"item_completed"`, `"turn_context"`} {
		if bytes.Contains(line, []byte(word)) {
			return true
		}
	}
	return false
}

// summarised counts the request by which the client made a summary of the conversation: its
// usage is in no transcript. It took the whole conversation, for which the least that it can have
// cost is counted; [State.topUp] adds what is missing, as soon as the client says its total.
func (s *State) summarised(l *flat.Members, at int64) {
	of := l.Value("compactMetadata")
	if of.Get("trigger").Text() == "manual" { // a person asked for it, before the lines that say so
		s.begin(l, at)
	}
	tokens := price.Tokens{CacheRead: number(of, "preTokens")}
	in := len(s.parts) - 1
	s.ask(hash("summary "+l.String("uuid")), s.Model, price.Usage{Tokens: tokens}, in, 0)
	s.summary = s.parts[in].from
	if s.quiet { // it said its total before it wrote the line
		s.topUp()
	}
}

// request counts an answer of the model, once for each message, and returns the model; "" where
// the line has no answer.
func (s *State) request(l *flat.Members, in int, at int64) (model string) {
	message := l.Value("message")
	usage := message.Get("usage")
	model = clip(message.Get("model").Text())
	if usage == "" || usage[0] != '{' || model == "<synthetic>" || l.Bool("isApiErrorMessage") {
		return ""
	}
	id := message.Get("id").Text()
	if id == "" {
		id = l.String("requestId")
	}
	if id == "" {
		id = l.String("uuid")
	}
	s.ask(hash(id), model, usageOf(usage), in, at)
	return model
}

// ask counts a request of that name, in a part, or what another line of it has more: the last
// line of a message has its final usage. A count never falls. at is when a subagent's was answered.
func (s *State) ask(name int64, model string, u price.Usage, in int, at int64) {
	var more price.Amount
	r := s.known(name)
	if r == nil {
		s.recent = append(s.recent, request{name: name, part: s.parts[in].from, at: at, model: s.modelAt(model)})
		s.recent = s.recent[max(0, len(s.recent)-maxRecent):]
		r, more.Requests = &s.recent[len(s.recent)-1], 1
	} else {
		in = s.partFrom(r.part)
	}
	tokens := largest(r.tokens, u.Tokens)
	more.Tokens = tokens.Minus(r.tokens)
	r.tokens, u.Tokens = tokens, tokens
	rates, _ := s.prices().Of(model)
	switch {
	case rates == nil && !r.unpriced && tokens.Sum() > 0:
		r.unpriced, more.Unpriced = true, 1
	case rates != nil:
		nanos := max(r.nanos, rates.Of(u))
		more.Nanos, more.Dollars = nanos-r.nanos, true
		r.nanos = nanos
	}
	s.book(more, in, r.model)
}

func (s *State) known(name int64) *request {
	for i := len(s.recent) - 1; i >= 0; i-- {
		if s.recent[i].name == name {
			return &s.recent[i]
		}
	}
	return nil
}

func largest(a, b price.Tokens) price.Tokens {
	return price.Tokens{
		Input: max(a.Input, b.Input), Output: max(a.Output, b.Output),
		CacheRead: max(a.CacheRead, b.CacheRead), CacheWrite: max(a.CacheWrite, b.CacheWrite),
	}
}

// prices is what models cost. It is read once, and only where something is to be priced.
func (s *State) prices() *price.Table {
	if s.table == nil {
		s.table, s.tableErr = Prices()
	}
	return s.table
}

// maxTokens is the most of each kind that one request is believed.
const maxTokens = 1_000_000_000

// usageOf is what an answer of Claude's says that it took.
func usageOf(usage flat.Value) price.Usage {
	of := func(name string) int64 { return number(usage, name) }
	return price.Usage{
		Tokens: price.Tokens{
			Input: of("input_tokens"), Output: of("output_tokens"),
			CacheRead: of("cache_read_input_tokens"), CacheWrite: of("cache_creation_input_tokens"),
		},
		CacheWrite1h: number(usage.Get("cache_creation"), "ephemeral_1h_input_tokens"),
		WebSearches:  number(usage.Get("server_tool_use"), "web_search_requests"),
		Fast:         usage.Get("speed").Text() == "fast",
		Domestic:     usage.Get("inference_geo").Text() == "us",
	}
}

// number is a count of tokens, 0 for none.
func number(usage flat.Value, name string) int64 {
	n, err := strconv.ParseInt(string(usage.Get(name)), 10, 64)
	if err != nil {
		return 0
	}
	return min(max(0, n), maxTokens)
}

// clip bounds a name that a file gives, to one line.
func clip(name string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(name[:min(len(name), 100)], ""), "\n", " ")
}

func isToolResult(l *flat.Members) bool {
	content := l.Value("message").Get("content")
	// Most are long, and only the first item is asked for.
	if !strings.HasPrefix(string(content), "[") || !strings.Contains(string(content), "tool_result") {
		return false
	}
	items := content.Items()
	return len(items) > 0 && items[0].Get("type").Text() == "tool_result"
}

// timeOf is when a line was written, in milliseconds since 1970, 0 if it does not say.
func timeOf(l *flat.Members) int64 {
	t, err := time.Parse(time.RFC3339, l.String("timestamp"))
	if err != nil {
		return 0
	}
	return max(0, t.UnixMilli())
}

// countAgents counts what the session's subagents asked for. Their transcripts are in a
// folder beside the session's own.
func (s *State) countAgents(limit int64) {
	base, ok := strings.CutSuffix(s.Transcript, ".jsonl")
	if !ok {
		return
	}
	dir := filepath.Join(base, "subagents")
	names, _, err := disk.Names(dir, 4*maxAgents)
	if err != nil {
		return // there are none
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.HasSuffix(name, ".jsonl") {
			limit -= s.countAgent(filepath.Join(dir, name), hash(name), max(1, limit), s.transcriptOfAgent)
		}
	}
}

func (s *State) transcriptOfAgent(l *flat.Members) {
	if l.String("type") == "assistant" {
		s.request(l, s.partAt(timeOf(l)), timeOf(l))
	}
}

func (s *State) agentNamed(name int64) int {
	return slices.IndexFunc(s.agents, func(a agent) bool { return a.name == name })
}

// countAgent counts the lines of a subagent's transcript, and returns how many bytes it read.
func (s *State) countAgent(path string, name, limit int64, count func(*flat.Members)) int64 {
	i := s.agentNamed(name)
	if i < 0 && len(s.agents) >= maxAgents {
		return 0
	}
	if i < 0 {
		i = len(s.agents)
		s.agents = append(s.agents, agent{name: name})
	}
	before := s.agents[i].read
	read := before                                                         // a line may have the list grow
	_ = follow(path, &read, limit, func() {}, func(line []byte, _ int64) { // what cannot be read is tried again
		if mayCount(line) {
			count(flat.Begun(line))
		}
	})
	s.agents[i].read = read
	return read - before
}
