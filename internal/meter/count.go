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
	more, err := follow(s.Transcript, &s.Read, limit, s.replaced, s.line)
	s.behind = more
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
		all.weight = addWeight(all.weight, p.weight)
		all.divided = all.divided || p.divided
	}
	for i := range s.recent {
		s.recent[i].part = -1
	}
	s.parts, s.settled = []part{all}, 0
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
		if s.request(l, !l.Bool("isSidechain"), len(s.parts)-1) {
			s.Model = modelOf(l)
		}
	case "user":
		if !l.Bool("isSidechain") && !isToolResult(l) {
			s.begin(l, at)
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
		s.parts = append(s.parts, part{from: at, at: timeOf(l), own: price.Amount{Nanos: s.loose}})
		s.loose = 0
	}
}

// mayCount spares most lines from being parsed.
func mayCount(line []byte) bool {
	for _, word := range [...]string{`"assistant"`, `"user"`, `"cost-state"`, `"token_usage_record"`, `"item_completed"`, `"turn_context"`} {
		if bytes.Contains(line, []byte(word)) {
			return true
		}
	}
	return false
}

// request counts an answer of the model, once for each message. It reports whether
// there is one.
func (s *State) request(l *flat.Members, main bool, in int) bool {
	message := l.Value("message")
	usage := message.Get("usage")
	if usage == "" || usage[0] != '{' || message.Get("model").Text() == "<synthetic>" || l.Bool("isApiErrorMessage") {
		return false
	}
	id := message.Get("id").Text()
	if id == "" {
		id = l.String("requestId")
	}
	if id == "" {
		id = l.String("uuid")
	}
	s.asked(hash(id), tokensOf(usage), main, in)
	return true
}

// asked counts a request of that name, in a part, unless it was counted. main says that it
// is the session's own.
func (s *State) asked(name int64, tokens price.Tokens, main bool, in int) {
	for i := len(s.recent) - 1; i >= 0; i-- {
		if s.recent[i].name == name {
			s.again(&s.recent[i], tokens)
			return
		}
	}
	if main {
		s.main++
	}
	in = max(in, min(s.settled, len(s.parts)-1))
	s.parts[in].own = s.parts[in].own.Plus(price.Amount{Tokens: tokens, Requests: 1})
	s.recent = append(s.recent, request{name: name, tokens: tokens, part: s.parts[in].from, number: s.main})
	if len(s.recent) > 2*maxWaiting {
		s.forget()
	}
}

// again is another line of a message that was counted. The last line of one has its
// final usage; a count never falls.
func (s *State) again(r *request, tokens price.Tokens) {
	now := price.Tokens{
		Input: max(r.tokens.Input, tokens.Input), Output: max(r.tokens.Output, tokens.Output),
		CacheRead: max(r.tokens.CacheRead, tokens.CacheRead), CacheWrite: max(r.tokens.CacheWrite, tokens.CacheWrite),
	}
	p := &s.parts[s.partFrom(r.part)]
	p.own = p.own.Plus(price.Amount{Tokens: now.Minus(r.tokens)})
	r.tokens = now
}

// maxTokens is the most of each kind that one request is believed.
const maxTokens = 1_000_000_000

func tokensOf(usage flat.Value) price.Tokens {
	of := func(name string) int64 { return number(usage, name) }
	return price.Tokens{
		Input: of("input_tokens"), Output: of("output_tokens"),
		CacheRead: of("cache_read_input_tokens"), CacheWrite: of("cache_creation_input_tokens"),
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

func modelOf(l *flat.Members) string {
	return clip(l.Value("message").Get("model").Text())
}

// clip bounds a name that a file gives.
func clip(name string) string { return strings.ToValidUTF8(name[:min(len(name), 100)], "") }

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
		s.request(l, false, s.partAt(timeOf(l)))
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
	read := before // a line may have the list grow
	more, err := follow(path, &read, limit, func() {}, func(line []byte, _ int64) {
		if !mayCount(line) {
			return
		}
		count(flat.Begun(line))
	})
	s.agents[i].read = read
	if err == nil && more {
		s.behind = true
	}
	return read - before
}
