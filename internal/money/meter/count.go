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
	"heartbeat/internal/money/price"
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
	for i := range s.summaries {
		s.summaries[i].part = -1
	}
	s.parts, s.shares = []part{all}, nil
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
		switch {
		case l.Bool("isCompactSummary"):
			text := l.Value("message").Get("content").Text()
			s.summarised(price.Tokens{Output: int64(max(0, len(text)-aroundSummary) / bytesOfToken)})
		case !l.Bool("isSidechain") && !isToolResult(l):
			s.begin(l, at)
		}
	case "system":
		if l.String("subtype") == "compact_boundary" {
			s.summarise(l, at)
		}
	case "cost-state":
		s.state(l)
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

// summarise counts the request by which the client made a summary of the conversation: its usage is
// in no transcript. It took the whole conversation and wrote the summary, for which the least is
// counted that it can have cost, until [State.topUp].
func (s *State) summarise(l *flat.Members, at int64) {
	of := l.Value("compactMetadata")
	if of.Get("trigger").Text() == "manual" { // a person asked for it, before the lines that say so
		s.begin(l, at)
	}
	s.summaries = append(s.summaries, summary{name: hash("summary " + l.String("uuid")), part: s.last().from})
	s.summaries = s.summaries[max(0, len(s.summaries)-maxSummaries):]
	s.summarised(price.Tokens{CacheRead: number(of, "preTokens")})
}

const (
	// bytesOfToken is more than a token of a summary has.
	bytesOfToken = 6
	// aroundSummary is how many bytes the client itself puts around a summary, or more.
	aroundSummary = 1200
)

// summarised counts what the last summary took as far as that is known.
func (s *State) summarised(t price.Tokens) {
	if n := len(s.summaries); n > 0 {
		last := s.summaries[n-1]
		s.ask(last.name, s.Model, price.Usage{Tokens: t}, s.partFrom(last.part), 0)
	}
}

// state takes what the client writes into the transcript when it ends: its total, from which it goes
// on when the session is resumed, and of what that is made up.
func (s *State) state(l *flat.Members) {
	total, err := price.DollarsOf(string(l.Value("totalCostUSD")))
	if err != nil || total < 0 {
		return
	}
	since := s.stated
	if total < since {
		since = 0 // it did not take up the old total
	}
	s.stated = total
	s.last().own.Said += total - since
	s.topUp(l.Value("modelUsage"), total)
	for i := range s.summaries {
		s.summaries[i].told = true
	}
}

// topUp gives the summaries what the client's total has beyond the transcript, the same to each, since
// they are all that the client does not show there and that costs more than a little. What it says of
// models without a price is left aside. A person's own prices are not the client's, so that there the
// difference tells nothing.
func (s *State) topUp(models flat.Value, total int64) {
	m, err := flat.Parse([]byte(models))
	guessed := int64(0)
	for _, of := range s.summaries {
		if !of.told {
			guessed++
		}
	}
	if _, own := s.prices().Of(s.Model); guessed == 0 || own != "" || err != nil {
		return
	}
	m.Without(nil, func(model string, usage []byte) {
		rates, own := s.prices().Of(clip(model))
		if usd, err := price.DollarsOf(string(flat.Value(usage).Get("costUSD"))); rates == nil && err == nil {
			total -= usd
		}
		if own != "" {
			total = 0
		}
	})
	for _, p := range s.parts {
		total -= p.own.Nanos
	}
	for i := range s.summaries {
		of := &s.summaries[i]
		if of.told || total <= 0 {
			continue
		}
		of.more = total / guessed
		s.book(price.Amount{Nanos: of.more, Dollars: true}, s.partFrom(of.part), s.modelAt(s.Model))
		total, guessed = total-of.more, guessed-1
	}
}

// Late is what the summaries between two positions cost beyond the guess that was counted first, in
// billionths of a dollar; guessed says that they still may.
func (s *State) Late(from, to int64) (more int64, guessed bool) {
	for _, of := range s.summaries {
		if of.part >= from && of.part < to {
			more, guessed = more+of.more, guessed || !of.told
		}
	}
	return more, guessed
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
