package meter

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/claude"
	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/lines"
	"heartbeat/internal/money/price"
)

const (
	maxLine   = 16 << 20 // a longer line is passed over
	maxRead   = 4 << 30  // of a transcript
	leadBytes = 16 << 10 // is read before a range: the first of an answer's lines, and the client's total
	maxAgents = 512
)

// follow calls f for each whole line of a file from a little before an offset on, and returns the offset behind the
// last. own says that the answer that uses Range.Tool belongs in this file. A missing file has no lines.
func (c *counter) follow(path string, from int64, own bool, f func(l *flat.Members, at int64)) (end int64, err error) {
	file, err := disk.OpenForeign(path, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		c.missing = c.missing || path == c.Transcript
		return from, nil
	}
	if err != nil {
		return from, err
	}
	defer file.Close() // it was only read
	end, start := from, max(0, from-leadBytes)
	size := min(file.Info().Size, start+maxRead)
	tool := []byte(`"` + c.Tool + `"`)
	err = lines.EachHead(maxLine, true, io.NewSectionReader(file, start, max(0, size-start)), start, func(at, next int64, line []byte, whole bool) bool {
		if !whole { // it is being written
			return false
		}
		if (at > start || start == 0) && len(line) <= maxLine && (len(c.others) > 0 || mayCount(line)) {
			c.HasTool = c.HasTool || own && c.Tool != "" && bytes.Contains(line, tool) && bytes.Contains(line, []byte(`"assistant"`))
			f(flat.Begun(line), at)
		}
		end = max(end, next)
		return true
	})
	return end, err
}

// mayCount reports whether a line must be parsed. It spares above all the results of tools, most of a transcript.
func mayCount(line []byte) bool {
	if bytes.Contains(line, []byte(`"type":"tool_result"`)) && !bytes.Contains(line, []byte(`"type":"assistant"`)) {
		return false // an answer may give a tool such an object
	}
	for _, word := range [...]string{`"assistant"`, `"user"`, `"cost-state"`, `"compact_boundary"`, `"token_usage_record"`, `"item_completed"`, `"turn_context"`, `"thread_settings_applied"`} {
		if bytes.Contains(line, []byte(word)) {
			return true
		}
	}
	return false
}

// line counts a line of the session's own transcript. A forked one begins with a copy, whose lines keep their times.
func (c *counter) line(l *flat.Members, at int64) {
	if when := timeOf(l); c.From == 0 && (c.Later == 0 || at < c.Later) && l.Exists("uuid") && when > 0 && when < c.Since-late {
		return
	}
	switch other := c.isOther(l, at); l.String("type") {
	case "assistant":
		if model := c.answer(l, c.partOfLine(at), other); model != "" {
			c.Model, c.Whole = model, c.Whole && at >= c.From
		}
	case "user":
		switch {
		case at < c.From && !l.Exists("isCompactSummary"):
		case l.Bool("isCompactSummary"):
			text := l.Value("message").Get("content").Text()
			c.summarised(price.Tokens{Output: int64(max(0, len(text)-aroundSummary) / bytesOfToken)})
		case !l.Bool("isSidechain") && !claude.IsToolResult(l):
			c.begin(at, timeOf(l))
		}
	case "system":
		if l.String("subtype") == "compact_boundary" {
			c.summarise(l, at)
		}
	case "cost-state":
		c.state(string(l.Value("totalCostUSD")), l.Bool("hasUnknownModelCost"), c.partOfLine(at))
	default:
		c.rollout(l, at)
	}
}

// isOther reports whether a line belongs to a prompt of no entry, as a second client of the session appends them
// between the lines of an entry's. The lines of a prompt name it or descend from it.
func (c *counter) isOther(l *flat.Members, at int64) bool {
	prompt := l.String("promptId")
	entry, known := c.Prompts[prompt]
	other := entry < 0
	if !known {
		other = c.others[l.String("parentUuid")]
		if len(c.Prompts) > 0 && prompt != "" && claude.AsksModel(l) {
			other = other || !claude.IsTaskReport(l.Value("message").Get("content").Text())
			if entry = c.entryAt(at); other {
				entry = -1
			}
			c.Prompts[strings.Clone(prompt)] = entry
		}
	}
	if id := l.String("uuid"); other && id != "" { // "" is the parent of lines that descend from none
		c.others[strings.Clone(id)] = true // a part would keep the whole line
	}
	return other
}

// entryAt returns where the prompt of the last entry that had begun by then begins, or the first one's.
func (c *counter) entryAt(at int64) int64 {
	first, last := int64(math.MaxInt64), int64(-1)
	for _, from := range c.Prompts {
		if from >= 0 {
			first = min(first, from)
		}
		if from <= at {
			last = max(last, from)
		}
	}
	return max(first, last)
}

// summarise counts the request with which the client summarised the conversation. No transcript has its usage. It read
// the whole conversation and wrote the summary, and the least that this can have cost is counted.
func (c *counter) summarise(l *flat.Members, at int64) {
	of := l.Value("compactMetadata")
	if of.Get("trigger").Text() == "manual" { // a person asked for it, in lines that come later
		c.begin(at, timeOf(l))
	}
	c.summary = c.addRequest("summary "+l.String("uuid"), c.Model, price.Usage{}, timeOf(l), c.partOfLine(at))
	c.summary.guess = true
	c.Whole = c.Whole && at >= c.From
	c.summarised(price.Tokens{CacheRead: number(of, "preTokens")})
}

const (
	bytesOfToken  = 6    // more than a token of a summary has
	aroundSummary = 1200 // at least the bytes that the client itself puts around a summary
)

// summarised counts what is known of the last summary's usage.
func (c *counter) summarised(t price.Tokens) {
	if c.summary != nil {
		c.summary.usage.Tokens = c.summary.usage.Tokens.Most(t)
	}
}

// answer counts an answer, once for each message. It returns the model, or "" if the line has no answer.
func (c *counter) answer(l *flat.Members, part int, other bool) (model string) {
	message := l.Value("message")
	usage := message.Get("usage")
	model = clip(message.Get("model").Text())
	if usage == "" || usage[0] != '{' || model == "<synthetic>" || l.Bool("isApiErrorMessage") {
		return ""
	}
	id := cmp.Or(message.Get("id").Text(), l.String("requestId"), l.String("uuid"))
	for i, of := range usage.Get("iterations").Items() {
		if of.Get("type").Text() == "advisor_message" { // by another model, and part of no other figure
			c.addRequest(id+" "+strconv.Itoa(i), cmp.Or(clip(of.Get("model").Text()), model), usageOf(of), timeOf(l), part)
		}
	}
	c.addRequest(id, model, usageOf(usage), timeOf(l), part).other = other
	return model
}

const maxTokens = 1_000_000_000 // limits what is believed of one request, for each kind of token

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

func number(usage flat.Value, name string) int64 {
	of := usage.Get(name)
	if of == "" { // as most are, and an error takes longer
		return 0
	}
	n, err := strconv.ParseInt(string(of), 10, 64)
	if err != nil {
		return 0
	}
	return min(max(0, n), maxTokens)
}

// timeOf returns when a line was written, in milliseconds since 1970, or 0 if unknown.
func timeOf(l *flat.Members) int64 {
	t, _ := time.Parse(time.RFC3339, l.String("timestamp")) // on an error a time before 1970
	return max(0, t.UnixMilli())
}

// agents counts the requests of subagents in the range. Their transcripts are in a folder beside the session's own, and
// name the prompts that they work for. What a subagent spends after the turns of its prompt's entry is no entry's.
func (c *counter) agents() {
	base, ok := strings.CutSuffix(c.Transcript, ".jsonl")
	if !ok {
		return
	}
	dir := filepath.Join(base, "subagents")
	names, _, _ := disk.Names(dir, 4*maxAgents) // mostly there are none
	slices.Sort(names)
	left := maxAgents
	for _, name := range names {
		if !strings.HasSuffix(name, ".jsonl") || left == 0 {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := disk.StatName(path)
		if err != nil || info.Mtime/int64(time.Millisecond) < c.Since {
			continue // it has not changed in the range
		}
		left--
		// The next count reads again what cannot be read now.
		entry := int64(math.MaxInt64) // of clients that name no prompt
		_, _ = c.follow(path, 0, name == "agent-"+c.Agent+".jsonl", func(l *flat.Members, _ int64) {
			at, prompt, result := timeOf(l), l.String("promptId"), claude.IsToolResult(l) // which names the session's prompt by then
			of, known := c.Prompts[prompt]
			if known && !result {
				entry = of
			} else if !known && !result && prompt != "" && len(c.Prompts) > 0 && at < c.Since {
				entry = -1
			}
			if part := c.partAt(at); l.String("type") == "assistant" {
				c.answer(l, part, part >= 0 && entry < c.entryAt(c.Parts[part].From))
			}
		})
	}
}
