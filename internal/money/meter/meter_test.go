package meter_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/money/account"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
)

// Each request has its price as soon as its line is there, whoever says a total.
func TestAChainOfTurns(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(1000, 100))
	stop := r.write(feedback("two"))
	s := r.count()
	want := price.Amount{Nanos: 6_000_000, Dollars: true, Tokens: price.Tokens{Input: 1000, Output: 100}, Requests: 1}
	assert.Equal(t, want, s.Before(stop))
	assert.Equal(t, "claude-opus-5-5", s.Model)

	r.write(r.answer(2000, 200), r.part(2000, 200), toolResult, r.answer(3000, 300))
	s = r.count()
	assert.Equal(t, price.Amount{Nanos: 36_000_000, Dollars: true, Tokens: price.Tokens{Input: 6000, Output: 600}, Requests: 3}, s.Spent)
	assert.Equal(t, want, s.Before(stop))
	assert.Len(t, s.Parts, 2, "what a tool said is none")
}

// The first line of all may be a user's.
func TestTheFirstLineIsAUsers(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1))
	c := r.count()
	require.Len(t, c.Parts, 1)
	assert.True(t, c.Parts[0].User)
	assert.EqualValues(t, 1, c.Spent.Requests)
}

// An answer counts whatever it gives its tool.
func TestAToolIsGivenAResult(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), `{"type":"assistant","message":{"id":"x","model":"claude-opus-5-5","content":[{"type":"tool_use","id":"toolu_1","input":{"of":[{"type":"tool_result"}]}}],"usage":{"input_tokens":1000}}}`, toolResult)
	assert.EqualValues(t, 4_000_000, r.count().Spent.Nanos)
}

// What a model asks another one for counts at that one's price, however often the lines say it.
func TestAnAdvisor(t *testing.T) {
	r := newRig(t)
	answer := `{"type":"assistant","message":{"id":"x","model":"claude-opus-5-5","usage":{"input_tokens":1000,"output_tokens":100,"iterations":[` +
		`{"type":"message","input_tokens":1000,"output_tokens":100},{"type":"advisor_message","model":"claude-opus-4-8","input_tokens":2000,"output_tokens":200}]}}}`
	r.write(prompt("one"), answer, answer)
	c := r.count()
	assert.Equal(t, price.Amount{Nanos: 6_000_000 + 15_000_000, Dollars: true, Tokens: price.Tokens{Input: 3000, Output: 300}, Requests: 2}, c.Spent)
	assert.Equal(t, "claude-opus-5-5", c.Parts[0].Models[0].Model)
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
		assert.Equal(t, nanos, r.count().Spent.Nanos, usage)
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
	s := r.count()
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
	assert.Equal(t, price.Amount{Nanos: 3_000_000 + 2_000_000, Dollars: true, Tokens: price.Tokens{Input: 2000, Output: 200}, Requests: 2}, r.count().Spent)
	r = own("[models.\"*\"]\ninput = 0\noutput = 0\n[models.claude-opus-5-5]\nmultiplier = 2\n")
	assert.Equal(t, price.Amount{Nanos: 12_000_000, Dollars: true, Tokens: price.Tokens{Input: 2000, Output: 200}, Requests: 2}, r.count().Spent)

	r = own("[models.\"claude-opus-5-5[1m]\"]\nmultiplier = 2\n[models.\"*\"]\ninput = 0\noutput = 0\n")
	assert.Equal(t, int64(12_000_000), r.count().Spent.Nanos, "as a person names it for the client")

	r = own("multiplier = 0\n[models.\"house-*\"]\ninput = 1\noutput = 10\n") // as where a subscription pays
	assert.Equal(t, price.Amount{Nanos: 2_000_000, Dollars: true, Tokens: price.Tokens{Input: 2000, Output: 200}, Requests: 2}, r.count().Spent)

	for text, why := range map[string]string{
		"[models.house]\ninput = 1\n": "say its input and its output", "multiplyer = 2": "line 1: multiplyer is no setting", "multiplier = -1": "it is a number from 0",
		"[models.\"[\"]\ninput = 1\noutput = 1": "is no pattern", "[models.x]\ninput = 1\noutput = 1\nprompt = 2": "line 4: prompt is none of input", "x": "line 1: it is no [models.NAME]",
		"[models.x]\ninput = 1\n\ninput = 2": "line 4: input stands there twice", "[models.x] y": "y does not belong there", "[models.x": "its ] is missing", "multiplier = 1 2": "2 does not belong",
		"[models.x]\ninput = 1\noutput = 2\n[models.x]": "stands there twice", "[models.x]\ninput = 1\noutput = 2\n[models.\"X[1m]\"]": "stands there twice", "[prices]": "it is no [models.NAME]", "multiplier = nan": "it is no", "multiplier = 2e9": "it is a number from 0",
	} {
		r = own(text)
		s, err := r.countOnly()
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, err, "the prices that are built in count")
		assert.Equal(t, int64(6_000_000), s.Spent.Nanos, "the others have their price")
	}

	r = own("multiplier = 2\n[models.house-model-7]\ninput = 1\noutput = 10\n[models.claude-opus-5-5\ninput = 900\n[models.x]\ninput = y\n")
	s, err := r.countOnly()
	require.ErrorContains(t, err, "line 5: its ] is missing")
	assert.Equal(t, int64(12_000_000+2_000_000), s.Spent.Nanos, "what can be read counts")
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
		r.write(c.lines...)
		assert.Equal(t, price.Amount{ClientNanos: usd(t, c.said)}, r.count().Spent, name)
	}
}

// From where it was charged to, only the rest counts: an answer whose first lines are before that, and what
// the client said by then, are not counted again.
func TestARangeBegins(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1), stated("0.5"))
	from := r.write(r.part(10, 4), prompt("two"), r.answer(7, 1), stated("0.75"))
	c, err := meter.Scan(meter.Range{Transcript: r.path, From: from})
	require.NoError(t, err)
	require.Len(t, c.Parts, 2)
	assert.Equal(t, price.Amount{}, c.Parts[0].Spent)
	assert.EqualValues(t, 500_000_000, c.Parts[0].Stated)
	assert.EqualValues(t, 7, c.Parts[1].Spent.Tokens.Input)
	assert.EqualValues(t, 250_000_000, c.Parts[1].Spent.ClientNanos)
	c, err = meter.Scan(meter.Range{Transcript: r.path, From: 1 << 40})
	require.NoError(t, err)
	assert.Equal(t, price.Amount{}, c.Parts[0].Spent)
}

// The requests for summaries are in no transcript. They belong where they were made, and the least counts
// that they can have cost. One that a person asked for is not the last turn's.
func TestCompaction(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 4))
	r.write(compacted(1000))
	const turn, least = 120_000, 200_000 + 20_000 // with a token of output
	assert.EqualValues(t, turn+least, r.count().Spent.Nanos)
	second := r.write(feedback("two"))
	r.write(r.answer(10, 4))
	asked := r.write(strings.Replace(strings.Replace(compacted(1000), "c1000", "c1001", 1), "auto", "manual", 1))
	s := r.count()
	assert.EqualValues(t, turn+least, s.Before(second).Nanos)
	assert.EqualValues(t, 2, s.Before(second).Requests)
	assert.EqualValues(t, 2*turn+least, s.Before(asked).Nanos)
	assert.EqualValues(t, 2*(turn+least), s.Spent.Nanos)
	require.Len(t, s.Parts, 3, "a summary is no turn of its own")
	var guesses []int64
	for _, p := range s.Parts {
		guesses = append(guesses, p.Guess.Nanos)
	}
	assert.Equal(t, []int64{least, 0, least}, guesses)
}

// The client's total covers more than a range that begins behind a summary.
func TestARangeBehindASummary(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 4), stated("0.5"))
	for before, whole := range map[string]bool{"": true, compacted(1000): false} {
		from := r.write(stated("0.5"), before)
		r.write(prompt("two"), r.answer(10, 4), stated("0.75"))
		c, err := meter.Scan(meter.Range{Transcript: r.path, From: from + int64(len(stated("0.5")+before)) + 2})
		require.NoError(t, err)
		assert.Equal(t, whole, c.Whole, before)
	}
}

// A summary at the beginning of a range is the next answer's model's where the client has written much behind the
// last answer. Until that answer nothing went to a model without a price, which would be a limit that is reached.
func TestCompactionFarBehindAnAnswer(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 4), `{"type":"attachment","attachment":{"type":"prompt_snapshot","text":"`+strings.Repeat("s", 20_000)+`"}}`)
	from := r.write(feedback("two"), compacted(1000))
	c, err := meter.Scan(meter.Range{Transcript: r.path, From: from})
	require.NoError(t, err)
	assert.Zero(t, c.Parts[0].Spent.Unpriced)
	r.write(r.answer(10, 4))
	c, err = meter.Scan(meter.Range{Transcript: r.path, From: from})
	require.NoError(t, err)
	assert.Zero(t, c.Parts[0].Spent.Unpriced)
	assert.EqualValues(t, 220_000, c.Parts[0].Guess.Nanos)
	assert.Equal(t, "claude-opus-5-5", c.Parts[0].Guess.Model)
}

func TestLinesOfOneMessage(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1), r.part(10, 1), r.part(10, 50), r.part(10, 20))
	s := r.count()
	assert.Equal(t, price.Amount{Nanos: 1_040_000, Dollars: true, Tokens: price.Tokens{Input: 10, Output: 50}, Requests: 1}, s.Spent)
	r.write(r.part(10, 60))
	assert.Equal(t, price.Amount{Nanos: 1_240_000, Dollars: true, Tokens: price.Tokens{Input: 10, Output: 60}, Requests: 1}, r.count().Spent)
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
	s := r.count()
	assert.Equal(t, price.Amount{}, s.Spent)
	r.write(`{"type":"assistant","message":{"id":"y","model":"m","usage":{"input_tokens":-5,"output_tokens":99999999999999999999,"cache_read_input_tokens":9000000000000000000}}}`)
	assert.Equal(t, price.Tokens{CacheRead: 1_000_000_000}, r.count().Spent.Tokens)
}

func TestALineThatIsBeingWritten(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"))
	whole := r.answer(10, 1) + "\n"
	r.append(whole[:50])
	assert.True(t, r.count().Spent.IsZero())
	r.append(whole[50:])
	assert.Equal(t, int64(1), r.count().Spent.Requests)
	assert.Equal(t, int64(1), r.count().Spent.Requests)
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
	s := r.count()
	spent := s.Before(second)
	assert.Equal(t, price.Amount{Nanos: 9_600_000, Dollars: true, Tokens: price.Tokens{Input: 1600, Output: 160}, Requests: 3}, spent)
	assert.Equal(t, price.Tokens{Input: 1607, Output: 167}, s.Spent.Tokens)
	r.agent("agent-1.jsonl", at(message("s4", 1, 1), "10:07:00"))
	s = r.count()
	assert.Equal(t, price.Tokens{Input: 1608, Output: 168}, s.Spent.Tokens)
	assert.Equal(t, spent, s.Before(second))
}

// What subagents asked for before a range is not of it, and files that have not changed since are not read.
func TestSubagentsOfARange(t *testing.T) {
	r := newRig(t)
	at := func(line, clock string) string { return replaceTime(line, clock) }
	r.write(at(prompt("one"), "10:00:00"), r.answer(100, 10))
	from := r.write(at(prompt("two"), "10:05:00"), r.answer(1, 1))
	r.agent("agent-1.jsonl", at(message("s1", 1000, 100), "10:04:00"), at(message("s1", 1000, 200), "10:06:00"), at(message("s2", 7, 7), "10:06:00"))
	since, err := time.Parse(time.RFC3339, "2026-11-22T10:05:00Z")
	require.NoError(t, err)
	scan := func() (sum price.Amount) {
		c, err := meter.Scan(meter.Range{Transcript: r.path, From: from, Since: since.UnixMilli()})
		require.NoError(t, err)
		return before(c, 1<<62)
	}
	assert.EqualValues(t, 2, scan().Requests)
	assert.EqualValues(t, 8, scan().Tokens.Input)
	old := since.Add(-time.Second)
	require.NoError(t, os.Chtimes(filepath.Join(strings.TrimSuffix(r.path, ".jsonl"), "subagents", "agent-1.jsonl"), old, old))
	assert.EqualValues(t, 1, scan().Requests)
}

// The answer that asked for a tool is found where it is: the session's own, or a subagent's.
func TestTheAnswerThatAskedForATool(t *testing.T) {
	r := newRig(t)
	asks := func(id, tool string) string {
		return strings.Replace(message(id, 1, 1), `{"type":"text","text":"answer"}`, `{"type":"tool_use","id":"`+tool+`"}`, 1)
	}
	r.write(prompt("one"), asks("a", "t1"), `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2"}]}}`)
	r.agent("agent-x.jsonl", asks("b", "t3"))
	for want, of := range map[[2]string]bool{
		{"t1", ""}: true, {"t2", ""}: false, {"t3", ""}: false, {"t3", "x"}: true, {"t1", "x"}: false, {}: false,
	} {
		c, err := meter.Scan(meter.Range{Transcript: r.path, Tool: want[0], Agent: want[1]})
		require.NoError(t, err)
		assert.Equal(t, of, c.HasTool, "%+v", want)
	}
}

// A transcript that is a FIFO is not waited for.
func TestForeignTranscripts(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"fifo":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"device":    func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		r := newRig(t)
		require.NoError(t, make(r.path), name)
		c, err := meter.Scan(meter.Range{Transcript: r.path})
		assert.Error(t, err, name)
		assert.NotNil(t, c)
	}
}

// A line without end is passed over once it ends.
func TestAHugeLine(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1))
	r.append(strings.Repeat("y", 40<<20))
	assert.EqualValues(t, 1, r.count().Spent.Requests)
	r.append("\n")
	r.write(r.answer(10, 1))
	assert.EqualValues(t, 2, r.count().Spent.Requests)
}

// A forked session begins with a copy of its parent's transcript. What the parent asked for is not asked again.
func TestScanForked(t *testing.T) {
	r := newRig(t)
	start, err := time.Parse(time.RFC3339, "2026-11-22T14:50:00Z")
	require.NoError(t, err)
	summary := strings.ReplaceAll(compacted(5000), `"isSidechain"`, `"timestamp":"2026-11-22T14:45:39.475Z","isSidechain"`)
	r.write(prompt("the parent's"), r.answer(1000, 100), summary, r.answer(1000, 100))
	r.write(replaceTime(prompt("its own"), "14:50:01"), replaceTime(r.answer(10, 1), "14:50:02"))
	c, err := meter.Scan(meter.Range{Transcript: r.path, Since: start.UnixMilli()})
	require.NoError(t, err)
	assert.EqualValues(t, 11, before(c, 1<<62).Tokens.Sum())
	assert.True(t, c.Whole, "its client's total begins at 0")
}

// Once a clock was set back, what a session spends is older than its start. It counts from its second turn on.
func TestAClockSetBack(t *testing.T) {
	r := newRig(t)
	start, err := time.Parse(time.RFC3339, "2026-11-22T20:00:00Z")
	require.NoError(t, err)
	r.write(prompt("the first"), r.answer(1000, 100))
	info, err := os.Stat(r.path)
	require.NoError(t, err)
	r.write(prompt("an entry"), r.answer(10, 1))
	s := &account.SessionTurns{ID: "s", Transcript: r.path, Turns: []account.Turn{
		{Since: start.UnixMilli()}, {From: info.Size(), Since: start.Add(-5 * time.Hour).UnixMilli(), Charged: price.Charged{EntryID: "e"}},
	}}
	c, err := meter.CountTurns(s, time.Time{}, "", "")
	require.NoError(t, err)
	all := c.Open("s")
	require.Len(t, all, 2)
	assert.EqualValues(t, 11, all[1].Tokens.Sum())
}
