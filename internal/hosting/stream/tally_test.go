package stream

import (
	"heartbeat/internal/hosting/folder"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// tally adds lines, one a second.
func tally(t *testing.T, tally *Tally, lines ...string) *Tally {
	t.Helper()
	if tally == nil {
		tally = &Tally{}
	}
	for i, line := range lines {
		m, ok := Parse([]byte(line))
		require.True(t, ok, line)
		tally.Add(m, noon.Add(time.Duration(i)*time.Second))
	}
	return tally
}

// says is an assistant line.
func says(id, text, usage string) string {
	return `{"type":"assistant","message":{"id":"` + id + `","content":[{"type":"text","text":"` + text + `"}],"usage":` + usage + `},"session_id":"s-2"}`
}

func ptr[T any](v T) *T { return &v }

func TestTallyOfKilledSession(t *testing.T) {
	got := tally(t, nil,
		`{"type":"system","subtype":"init","session_id":"s-1"}`,
		says("m1", "a", `{"input_tokens":10,"output_tokens":1,"cache_read_input_tokens":5}`),
		says("m1", "b", `{"input_tokens":10,"output_tokens":7,"cache_read_input_tokens":5}`),
		says("m2", "c", `{"input_tokens":20,"output_tokens":2,"cache_creation_input_tokens":3}`),
		says("m1", "d", `{"input_tokens":10,"output_tokens":8}`),
	)
	assert.Equal(t, "s-1", got.SessionID)
	assert.Equal(t, &folder.TokenUsage{Input: 30, Output: 10, CacheRead: ptr(int64(5)), CacheWrite: ptr(int64(3))}, got.Usage)
	assert.Nil(t, got.Cost)
	assert.Nil(t, got.Result)
	assert.Equal(t, ptr("d"), got.Text)
	assert.EqualValues(t, 5, got.Messages)
}

func TestTallyOfResults(t *testing.T) {
	got := tally(t, nil,
		says("m1", "a", `{"input_tokens":10,"output_tokens":1}`),
		`{"type":"result","subtype":"success","is_error":false,"num_turns":2,"session_id":"s-9","total_cost_usd":0.25,"usage":{"input_tokens":100,"output_tokens":50,"cache_read_input_tokens":7},"result":"a"}`,
	)
	assert.Equal(t, &folder.TokenUsage{Input: 100, Output: 50, CacheRead: ptr(int64(7))}, got.Usage)
	assert.Equal(t, ptr(0.25), got.Cost)
	assert.Equal(t, &folder.Result{ResultLine: folder.ResultLine{Subtype: "success", NumTurns: 2}, At: noon.Add(time.Second)}, got.Result)

	tally(t, got, says("m1", "a", `{"input_tokens":10,"output_tokens":1}`), says("m2", "b", `{"input_tokens":1,"output_tokens":1}`))
	assert.Equal(t, &folder.TokenUsage{Input: 101, Output: 51, CacheRead: ptr(int64(7))}, got.Usage, "killed in the turn after a result")

	tally(t, got, `{"type":"result","subtype":"error_during_execution","is_error":true,"total_cost_usd":"much","usage":null,"result":"it broke"}`)
	assert.Equal(t, &folder.TokenUsage{Input: 101, Output: 51, CacheRead: ptr(int64(7))}, got.Usage, "an absent field erases nothing")
	assert.Equal(t, ptr(0.25), got.Cost)
	assert.Equal(t, &folder.Result{ResultLine: folder.ResultLine{Subtype: "error_during_execution", IsError: true}, At: noon}, got.Result)
	assert.Equal(t, "it broke", got.ErrorText)
	tally(t, got, `{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found","really"]}`)
	assert.Equal(t, "No conversation found really", got.ErrorText, "a client without a turn says it elsewhere")

	tally(t, got, `{"type":"result","total_cost_usd":0.5,"usage":{"input_tokens":300}}`)
	assert.Equal(t, &folder.TokenUsage{Input: 400, Output: 51, CacheRead: ptr(int64(7))}, got.Usage, "each result has the usage since the last")
	assert.Equal(t, ptr(0.5), got.Cost)

	got.NextClient()
	assert.Nil(t, got.Result)
	tally(t, got, `{"type":"result","total_cost_usd":0.75,"usage":{"input_tokens":1,"output_tokens":2}}`)
	assert.Equal(t, &folder.TokenUsage{Input: 401, Output: 53, CacheRead: ptr(int64(7))}, got.Usage, "two clients' add up")
	assert.Equal(t, ptr(0.75), got.Cost, "it counts on from the cost of the one before")

	got.NextClient()
	tally(t, got, `{"type":"result","total_cost_usd":0.25,"usage":{}}`, `{"type":"result","total_cost_usd":1.25,"usage":{}}`)
	assert.Equal(t, ptr(2.0), got.Cost, "it begins at 0")
	assert.Equal(t, "s-2", got.SessionID)

	got.NextClient()
	assert.Empty(t, got.ClientSession())
	tally(t, got, `{"type":"system","subtype":"init","session_id":"s-3"}`, `{"type":"result","session_id":"s-3","total_cost_usd":2.5,"usage":{}}`)
	assert.Equal(t, ptr(4.5), got.Cost, "another conversation does not include the one before it")
	assert.Equal(t, "s-3", got.SessionID)
	assert.Equal(t, "s-3", got.ClientSession())
}

func TestTallyText(t *testing.T) {
	two := `{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"a\u00e9"},{"type":"tool_use","id":"t","name":"Bash","input":{"text":"no"}},{"type":"text","text":"]}\"b"}]}}`
	tests := map[string]struct {
		lines []string
		want  *string
	}{
		"joined":                         {[]string{two}, ptr(`aé]}"b`)},
		"the last one":                   {[]string{two, says("m2", "z", "{}")}, ptr("z")},
		"the last has only a tool":       {[]string{two, `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"u"}]}}`}, nil},
		"the last has no content at all": {[]string{two, `{"type":"assistant","message":{"content":"text"}}`, `{"type":"assistant"}`}, ptr(`aé]}"b`)},
		"user lines do not count":        {[]string{two, `{"type":"user","message":{"content":[{"type":"text","text":"u"}]}}`}, ptr(`aé]}"b`)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, tally(t, nil, tc.lines...).Text)
		})
	}
}

func TestTallyTools(t *testing.T) {
	got := tally(t, nil,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash"}]}}`,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"mcp__nexus-guild__signal"}]}}`,
	)
	assert.Equal(t, []ToolCall{{ID: "t1", Name: "Bash", Since: noon}, {ID: "t2", Name: "mcp__nexus-guild__signal", Since: noon.Add(time.Second)}}, got.OpenTools())
	tally(t, got, `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"tool_use_id"}]}]}}`)
	assert.Equal(t, []ToolCall{{ID: "t2", Name: "mcp__nexus-guild__signal", Since: noon.Add(time.Second)}}, got.OpenTools())
	tally(t, got, `{"type":"user","message":{"content":"typed"}}`, `{"type":"result"}`)
	assert.Empty(t, got.OpenTools())
}

// limitOf is a rate limit that the first line told of.
func limitOf(detail string, until time.Time) *folder.RateLimit {
	l := &folder.RateLimit{Detail: detail, Source: "ndjson-result", At: noon}
	if !until.IsZero() {
		l.ResetsAt = &until
	}
	return l
}

func TestTallyRateLimit(t *testing.T) {
	tests := map[string]struct {
		line string
		want *folder.RateLimit
	}{
		"as the client says it": {`{"type":"assistant","message":{"content":[{"type":"text","text":"You've hit your session limit · resets 5pm (UTC)"}]},"error":"rate_limit"}`,
			limitOf("rate_limit", noon.Add(5*time.Hour))},
		"in the error":            {`{"type":"x","error":"Claude AI usage limit reached|1795366800"}`, limitOf("Claude AI usage limit reached|1795366800", time.Unix(1795366800, 0).UTC())},
		"long":                    {`{"error":"Too Many Requests ` + strings.Repeat("é", 500) + `"}`, limitOf("Too Many Requests "+strings.Repeat("é", 182), time.Time{})},
		"429":                     {`{"error":"HTTP 429"}`, limitOf("HTTP 429", time.Time{})},
		"another error":           {`{"error":"server_error"}`, nil},
		"an object":               {`{"error":{"type":"rate_limit"}}`, nil},
		"in the text":             {says("m", "rate limit 429", "{}"), nil},
		"in a nested error":       {`{"type":"assistant","message":{"error":"rate_limit"}}`, nil},
		"a result that is error":  {`{"type":"result","is_error":true,"result":"rate limit"}`, nil},
		"with a subtype of error": {`{"type":"system","subtype":"rate_limit"}`, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, tally(t, nil, tc.line).RateLimit)
		})
	}
	got := tally(t, nil, `{"error":"rate_limit"}`, `{"error":"quota exceeded, resets in 10 minutes"}`)
	assert.Equal(t, limitOf("rate_limit", noon.Add(time.Second+10*time.Minute)), got.RateLimit, "the first one counts, and a later one may say until when")
}

func TestTallyOfNonsense(t *testing.T) {
	assert.NotPanics(t, func() {
		tally(t, nil, `{"type":"assistant","message":[]}`, `{"type":"assistant","message":{"usage":[],"content":[[],1,"a",{}]}}`,
			`{"type":"user","message":{"content":[[{}],{"tool_use_id":{}}]}}`, `{"type":"result","usage":[1],"num_turns":-4,"total_cost_usd":null}`,
			`{"type":"assistant","message":{"id":"a","usage":{"input_tokens":1e300,"output_tokens":-1,"cache_read_input_tokens":"5"}}}`)
	})
}
