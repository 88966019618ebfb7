package meter_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
)

// Each request has its price as soon as its line is there, whoever says a total.
func TestAChainOfTurns(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(1000, 100))
	stop := r.write(feedback("two"))
	s := r.advance(r.silent())
	want := price.Amount{Nanos: 6_000_000, Dollars: true, Tokens: price.Tokens{Input: 1000, Output: 100}, Requests: 1}
	assert.Equal(t, want, s.Before(stop))
	assert.Equal(t, "claude-opus-5-5", s.Model)

	r.write(r.answer(2000, 200), r.part(2000, 200), toolResult, r.answer(3000, 300))
	s = r.advance(r.silent())
	assert.Equal(t, price.Amount{Nanos: 36_000_000, Dollars: true, Tokens: price.Tokens{Input: 6000, Output: 600}, Requests: 3}, s.Spent)
	assert.Equal(t, want, s.Before(stop))
	_, ok := s.Mark(stop + 1)
	assert.False(t, ok)
}

// The first line of all may be a user's.
func TestTheFirstLineIsAMark(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1))
	m, ok := r.advance(r.silent()).Mark(0)
	require.True(t, ok)
	assert.Zero(t, m.Offset)
	assert.True(t, m.Before.IsZero())
}

// What the price of a request depends on beside its tokens.
func TestUsages(t *testing.T) {
	for usage, nanos := range map[string]int64{
		`"input_tokens":1000,"output_tokens":100,"cache_read_input_tokens":5000,"cache_creation_input_tokens":2000`:                                                     17_000_000,
		`"input_tokens":1000,"output_tokens":100,"cache_read_input_tokens":5000,"cache_creation_input_tokens":2000,"cache_creation":{"ephemeral_1h_input_tokens":1500}`: 21_500_000,
		`"input_tokens":1000,"output_tokens":100,"server_tool_use":{"web_search_requests":3}`:                                                                           36_000_000,
		`"input_tokens":1000,"output_tokens":100,"speed":"fast"`:                                                                                                        12_000_000,
		`"input_tokens":1000,"output_tokens":100,"inference_geo":"us"`:                                                                                                  6_600_000,
	} {
		r := newRig(t)
		r.write(prompt("one"), `{"type":"assistant","message":{"id":"x","model":"claude-opus-5-5-20260901","usage":{`+usage+`}}}`)
		assert.Equal(t, nanos, r.advance(r.silent()).Spent.Nanos, usage)
	}
}

func messageOf(model string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"model":%q,"usage":{"input_tokens":1000,"output_tokens":100}}}`, "of "+model, model)
}

// A model that nobody knows has no price, whatever the others cost.
func TestUnknownModels(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	r := newRig(t)
	r.write(prompt("one"), messageOf("claude-haiku-4-5-20251001"), messageOf("house-model-7"), messageOf("house-model-7"), messageOf("us.anthropic.claude-opus-4-8-v1:0"))
	s := r.advance(r.silent())
	assert.Equal(t, price.Amount{
		Nanos: 1_500_000 + 7_500_000, Dollars: true, Tokens: price.Tokens{Input: 3000, Output: 300}, Requests: 3, Unpriced: 1,
	}, s.Spent)
}

// A person's table counts before what is built in.
func TestOwnPrices(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	own := func(text string) *rig {
		require.NoError(t, os.MkdirAll(filepath.Dir(meter.PricesPath()), 0o700))
		require.NoError(t, os.WriteFile(meter.PricesPath(), []byte(text), 0o600))
		r := newRig(t)
		r.write(prompt("one"), messageOf("claude-opus-5-5"), messageOf("house-model-7"))
		return r
	}
	r := own("multiplier = 0.5\n[models.\"house-*\"]\ninput = 1\noutput = 10\n")
	assert.Equal(t, price.Amount{Nanos: 3_000_000 + 2_000_000, Dollars: true, Tokens: price.Tokens{Input: 2000, Output: 200}, Requests: 2}, r.advance(r.silent()).Spent)
	r = own("[models.\"*\"]\ninput = 0\noutput = 0\n[models.claude-opus-5-5]\nmultiplier = 2\n")
	assert.Equal(t, price.Amount{Nanos: 12_000_000, Dollars: true, Tokens: price.Tokens{Input: 2000, Output: 200}, Requests: 2}, r.advance(r.silent()).Spent)

	for text, why := range map[string]string{
		"[models.house]\ninput = 1\n": "say its input and its output", "multiplyer = 2": "line 1: multiplyer is no setting", "multiplier = -1": "it is a number from 0",
		"[models.\"[\"]\ninput = 1\noutput = 1": "is no pattern", "[models.x]\ninput = 1\noutput = 1\nprompt = 2": "line 4: prompt is none of input", "x": "line 1: it is no [models.NAME]",
		"[models.x]\ninput = 1\n\ninput = 2": "line 4: input stands there twice", "[models.x] y": "y does not belong there", "[models.x": "its ] is missing", "multiplier = 1 2": "2 does not belong",
		"[models.x]\ninput = 1\noutput = 2\n[models.x]": "stands there twice", "[prices]": "it is no [models.NAME]", "multiplier = nan": "it is no", "multiplier = 2e9": "it is a number from 0",
	} {
		r = own(text)
		s, err := r.advanceOnly(r.silent())
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, err, "the prices that are built in count")
		assert.Equal(t, int64(6_000_000), s.Spent.Nanos, "the others have their price")
	}
}

// The client's own totals are kept beside what the requests cost.
func TestTotals(t *testing.T) {
	for name, c := range map[string]struct {
		said  string
		lines []string
	}{
		"in order, and resumed":  {"0.0336", []string{stated("0.0168"), stated("0.0168"), stated("0.0336"), stated("0.0336")}},
		"killed, and begun anew": {"0.0436", []string{stated("0.0268"), stated("0.0168")}},
	} {
		r := newRig(t)
		for _, line := range c.lines {
			r.write(line)
			r.advance(r.silent())
		}
		assert.Equal(t, price.Amount{Said: usd(t, c.said)}, r.advance(r.final()).Spent, name)
	}
}

// The requests for summaries are in no transcript. They belong where they were made, and what they cost
// is told by the client's total when it ends, whatever it makes of models that nobody else knows.
func TestCompaction(t *testing.T) {
	for name, c := range map[string]struct {
		more []string // lines behind
		end  string
	}{
		"its total":               {nil, stated("0.02636")},
		"a model without a price": {[]string{messageOf("house-model-7")}, statedOf("7.02636", `{"claude-opus-5-5":{"costUSD":0.02636},"house-model-7":{"costUSD":7}}`)},
	} {
		t.Setenv("XDG_CONFIG_HOME", t.TempDir())
		r := newRig(t)
		first := r.write(prompt("one"), r.answer(10, 4))
		r.write(compacted(1000))
		const least = 120_000 + 200_000 + 20_000 // with a token of output
		assert.EqualValues(t, least, r.advance(r.silent()).Spent.Nanos, "the least that it costs")
		second := r.write(feedback("two"))
		r.write(r.answer(10, 4), strings.Replace(compacted(1000), "c1000", "c1001", 1))
		third := r.write(feedback("three"))
		r.write(append(c.more, c.end)...)
		s := r.advance(r.final())
		assert.Equal(t, int64(13_180_000), s.Before(second).Nanos, name)
		assert.Equal(t, int64(2), s.Before(second).Requests, name)
		assert.Equal(t, int64(26_360_000), s.Before(third).Nanos, name)
		assert.Equal(t, int64(26_360_000), s.Spent.Nanos, name)
		m, _ := s.Mark(first + 1)
		assert.Equal(t, second, m.Offset, "a summary is no turn of its own")
		r.write(stated("9"))
		assert.Equal(t, int64(26_360_000), r.advance(r.final()).Spent.Nanos, "it is no guess any more")
	}
}

// One that a person asked for is not the last turn's, and where a person says the prices, the
// client's total is another sum.
func TestASummaryThatAPersonAskedFor(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	asked := strings.Replace(compacted(1000), "auto", "manual", 1)
	for _, own := range []string{"", "multiplier = 0.5"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(meter.PricesPath()), 0o700))
		require.NoError(t, os.WriteFile(meter.PricesPath(), []byte(own), 0o600))
		r := newRig(t)
		r.write(prompt("one"), r.answer(1000, 100))
		at := r.write(asked)
		r.write(feedback("two"), stated("0.01"))
		s := r.advance(r.final())
		if own == "" {
			assert.Equal(t, int64(6_000_000), s.Before(at).Nanos)
			assert.Equal(t, int64(10_000_000), s.Spent.Nanos)
		} else {
			assert.Equal(t, int64(3_000_000), s.Before(at).Nanos)
			assert.Equal(t, int64(3_110_000), s.Spent.Nanos)
		}
	}
}

func TestLinesOfOneMessage(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1), r.part(10, 1), r.part(10, 50), r.part(10, 20))
	s := r.advance(r.silent())
	assert.Equal(t, price.Amount{Nanos: 1_040_000, Dollars: true, Tokens: price.Tokens{Input: 10, Output: 50}, Requests: 1}, s.Spent)
	r.write(r.part(10, 60))
	assert.Equal(t, price.Amount{Nanos: 1_240_000, Dollars: true, Tokens: price.Tokens{Input: 10, Output: 60}, Requests: 1}, r.advance(r.silent()).Spent)
}

func TestWhatIsNoAnswer(t *testing.T) {
	r := newRig(t)
	r.write(
		`{"type":"assistant","message":{"id":"x","model":"<synthetic>","usage":{"input_tokens":1}}}`,
		`{"type":"assistant","isApiErrorMessage":true,"message":{"id":"x","model":"m","usage":{"input_tokens":1}}}`,
		`{"type":"assistant","message":{"id":"x","model":"m"}}`, `{"type":"assistant"}`, `{"type":"assistant","message":5}`,
		`{"type":"system","content":"\"assistant\" \"user\""}`, `"assistant"`, `[{"type":"user"}]`, `{"type":"user`, `"assistant`,
		`{"type":"cost-state","totalCostUSD":-1}`, `{"type":"cost-state","totalCostUSD":1e400}`, `{"type":"cost-state","totalCostUSD":"1"}`, `{"type":"cost-state"}`,
		"\x00\x00", "",
	)
	s := r.advance(r.silent())
	assert.Equal(t, price.Amount{}, s.Spent)
	r.write(`{"type":"assistant","message":{"id":"y","model":"m","usage":{"input_tokens":-5,"output_tokens":99999999999999999999,"cache_read_input_tokens":9000000000000000000}}}`)
	assert.Equal(t, price.Tokens{CacheRead: 1_000_000_000}, r.advance(r.silent()).Spent.Tokens)
}

func TestALineThatIsBeingWritten(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"))
	whole := r.answer(10, 1) + "\n"
	r.append(whole[:50])
	assert.True(t, r.advance(r.silent()).Spent.IsZero())
	r.append(whole[50:])
	assert.Equal(t, int64(1), r.advance(r.silent()).Spent.Requests)
	assert.Equal(t, int64(1), r.advance(r.silent()).Spent.Requests)
}

// Subagents count in the turn in which they asked.
func TestSubagents(t *testing.T) {
	r := newRig(t)
	at := func(line, clock string) string { return replaceTime(line, clock) }
	r.write(at(prompt("one"), "10:00:00"), r.answer(100, 10))
	second := r.write(at(prompt("two"), "10:05:00"))
	r.agent("agent-1.jsonl", at(message("s1", 1000, 100), "10:04:00"), at(message("s1", 1000, 100), "10:04:00"), at(message("s2", 7, 7), "10:06:00"))
	r.agent("agent-2.jsonl", at(message("s3", 500, 50), "10:04:30"))
	r.agent("agent-2.meta.json", "{}")
	s := r.advance(r.silent())
	spent := s.Before(second)
	assert.Equal(t, price.Amount{Nanos: 9_600_000, Dollars: true, Tokens: price.Tokens{Input: 1600, Output: 160}, Requests: 3}, spent)
	assert.Equal(t, price.Tokens{Input: 1607, Output: 167}, s.Spent.Tokens)
	r.agent("agent-1.jsonl", at(message("s4", 1, 1), "10:07:00"))
	s = r.advance(r.silent())
	assert.Equal(t, price.Tokens{Input: 1608, Output: 168}, s.Spent.Tokens)
	assert.Equal(t, spent, s.Before(second))
}

// A subagent's transcript may be counted before the line with which its turn begins.
func TestASubagentThatIsCountedFirst(t *testing.T) {
	r := newRig(t)
	at := func(line, clock string) string { return replaceTime(line, clock) }
	r.write(at(prompt("one"), "10:00:00"), r.answer(100, 10))
	r.agent("agent-1.jsonl", at(message("s1", 1000, 100), "10:04:00"), at(message("s2", 7, 7), "10:06:00"))
	assert.Equal(t, int64(3), r.advance(r.silent()).Spent.Requests)
	second := r.write(at(prompt("two"), "10:05:00"))
	s := r.advance(r.silent())
	assert.Equal(t, price.Amount{Nanos: 6_600_000, Dollars: true, Tokens: price.Tokens{Input: 1100, Output: 110}, Requests: 2}, s.Before(second))
	assert.Equal(t, int64(3), s.Spent.Requests)
	assert.Equal(t, int64(1), s.Models(second, second+1)[0].Requests)
}

func TestManyMarks(t *testing.T) {
	r := newRig(t)
	last := int64(0)
	for i := range 500 {
		last = r.write(feedback("more"))
		r.write(r.answer(10, 1))
		if i%3 == 0 {
			r.advance(r.silent())
		}
	}
	s := r.advance(r.silent())
	assert.Len(t, s.Marks, 32)
	assert.Equal(t, int64(499), s.Before(last).Requests)
	assert.Equal(t, int64(500*60_000), s.Spent.Nanos)
	for _, m := range s.Marks {
		assert.Equal(t, m.Before.Requests*60_000, m.Before.Nanos)
	}
}
