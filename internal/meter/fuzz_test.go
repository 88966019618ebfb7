package meter_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/meter"
	"heartbeat/internal/price"
)

const status = `{"session_id":"b390e335-141d-4188-be22-8f68df859c73","transcript_path":"/x/t.jsonl","cwd":"/x","prompt_id":"p","effort":{"level":"medium"},` +
	`"model":{"id":"claude-opus-5-5","display_name":"Opus 5.5"},"cost":{"total_cost_usd":0.012,"total_duration_ms":10467},` +
	`"context_window":{"total_input_tokens":1000,"context_window_size":1000000,"current_usage":{"input_tokens":1000,"output_tokens":100,` +
	`"cache_creation_input_tokens":5,"cache_read_input_tokens":7},"used_percentage":1.5},"prompt_cache":{"warm":false,"requests":2}}`

func TestParseStatus(t *testing.T) {
	r, err := meter.ParseStatus([]byte(status))
	require.NoError(t, err)
	assert.Equal(t, "b390e335-141d-4188-be22-8f68df859c73", r.Session)
	assert.Equal(t, "/x/t.jsonl", r.Transcript)
	assert.True(t, r.HasTotal)
	assert.Equal(t, int64(12_000_000), r.Total)
	assert.Equal(t, "claude-opus-5-5", r.Model)
	assert.InDelta(t, 1.5, r.ContextPercent, 0)
	require.NotNil(t, r.Usage)
	assert.Equal(t, int64(1112), r.Usage.Sum())

	r, err = meter.ParseStatus([]byte(`{"session_id":"s","cost":null,"context_window":{"current_usage":null,"used_percentage":null},"model":"x"}`))
	require.NoError(t, err)
	assert.False(t, r.HasTotal)
	assert.Negative(t, r.ContextPercent)
	assert.Nil(t, r.Usage)
}

func TestHostileStatus(t *testing.T) {
	for in, want := range map[string]string{
		"": "JSON", "null": "object", "{": "cut off", `{}`: "session_id", `{"session_id":5}`: "session_id",
		`{"session_id":"s","cost":{"total_cost_usd":-1}}`: "negative", `{"session_id":"s","cost":{"total_cost_usd":1e400}}`: "more than",
		`{"session_id":"s","cost":{"total_cost_usd":"1"}}`: "number", `{"session_id":"s","cost":{"total_cost_usd":NaN}}`: "JSON",
		`{"session_id":"s","cost":{"total_cost_usd":{}}}`:                      "number",
		`{"session_id":"s","x":` + strings.Repeat("[", 1_000_000):              "JSON",
		`{"session_id":"s","x":"` + strings.Repeat("y", 1<<20):                 "JSON",
		strings.Repeat(`{"session_id":`, 20_000) + strings.Repeat("}", 20_000): "JSON",
	} {
		_, err := meter.ParseStatus([]byte(in))
		assert.ErrorContains(t, err, want, "%.60s", in)
	}
	r, err := meter.ParseStatus([]byte(`{"session_id":"s","context_window":{"used_percentage":1e400,"current_usage":{"input_tokens":-1,"output_tokens":1e99}},"prompt_cache":{"requests":-3}}`))
	require.NoError(t, err)
	assert.Negative(t, r.ContextPercent)
	assert.Zero(t, r.Usage.Sum())
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte(status))
	f.Add([]byte(`{"session_id":"s","cost":{"total_cost_usd":1e400}}`))
	f.Add([]byte(`{"session_id":"s","context_window":[],"prompt_cache":{"requests":1.5}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := meter.ParseStatus(text)
		if err != nil {
			return
		}
		assert.NotEmpty(t, r.Session)
		assert.GreaterOrEqual(t, r.Total, int64(0))
	})
}

// FuzzFile has anything in the meter's place: it is read or not, and the count goes on.
func FuzzFile(f *testing.F) {
	dir := f.TempDir()
	r := &rig{t: f, dir: dir, path: filepath.Join(dir, "t.jsonl")}
	r.write(prompt("one"), r.answer(10, 1), prompt("two"))
	for _, reading := range []meter.Reading{r.started("a", "0"), r.said("a", "0.5", 10, 1)} {
		_, err := meter.Advance(dir, reading)
		require.NoError(f, err)
		seed, err := os.ReadFile(filepath.Join(dir, meter.Name(session)))
		require.NoError(f, err)
		f.Add(seed[512<<10:])
		f.Add(seed[:min(len(seed), 2000)])
	}
	last := r.said("a", "1", 10, 1)
	f.Fuzz(func(t *testing.T, file []byte) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, meter.Name(session)), meter.WithSum(file), 0o600))
		before, err := meter.Load(dir, session)
		require.NoError(t, err)
		s, err := meter.Advance(dir, last)
		require.NoError(t, err)
		if before != nil {
			assert.GreaterOrEqual(t, s.Spent.Nanos, before.Spent.Nanos)
			assert.GreaterOrEqual(t, s.Spent.Tokens.Sum(), before.Spent.Tokens.Sum())
		}
		at := int64(-1)
		for _, m := range s.Marks {
			assert.Greater(t, m.Offset, at)
			at = m.Offset
		}
	})
}

// FuzzTranscript counts anything, in one go and line by line, with the same result.
func FuzzTranscript(f *testing.F) {
	f.Add(prompt("one") + "\n" + message("a", 10, 1) + "\n" + message("a", 10, 2) + "\n" + stated("0.5") + "\n")
	f.Add(feedback("x") + "\n" + toolResult + "\n{\"type\":\"assistant\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		once, bit := newRig(t), newRig(t)
		require.NoError(t, os.WriteFile(once.path, []byte(text), 0o600))
		all := once.advance(once.final())
		require.NoError(t, os.WriteFile(bit.path, nil, 0o600))
		for line := range strings.Lines(text) {
			bit.append(line)
			if len(text) < 1000 {
				bit.advance(bit.silent())
			}
		}
		s := bit.advance(bit.final())
		assert.Equal(t, all.Spent.Nanos, s.Spent.Nanos)
		assert.Equal(t, all.Spent.Tokens, s.Spent.Tokens)
	})
}

// FuzzPrices has anything for the table of prices: it is refused, or it is TOML, as a library reads
// it, and every model has sane rates.
func FuzzPrices(f *testing.F) {
	for _, text := range []string{
		"", "multiplier = 0.5", "[models.\"*\"]\ninput = 0\noutput = 0", "[models.claude-opus-5-5]\nmultiplier = 2\ncache-read = 1e6", "[models.\"[\"]", "multiplier = nan",
		"[models.x]\ninput = inf\noutput = 1", "multiplier = \"1\"", "[models]\nx = 1", "\x00", "[models.x]\ninput = -1\noutput = 1",
		"# a\n multiplier=1e-1 # b\r\n[models.'a b*']\t#c\ninput = 0.5\noutput = 10\n", "[models.\"\xff\"]\ninput = 1\noutput = 1", "multiplier = +01.", "[models.x ]",
	} {
		f.Add([]byte(text), "claude-opus-5-5")
	}
	f.Fuzz(func(t *testing.T, text []byte, model string) {
		table, err := meter.ParsePrices(text)
		if err != nil {
			return
		}
		var all map[string]any
		require.NoError(t, toml.Unmarshal(text, &all), "it is TOML: %q", text)
		models, _ := all["models"].(map[string]any)
		require.Len(t, models, len(table.Own))
		r, _ := table.Of(model)
		if r == nil {
			return
		}
		nanos := r.Of(price.Usage{Tokens: price.Tokens{Input: 1000, Output: 1000, CacheRead: 1000, CacheWrite: 1000}, CacheWrite1h: 10, WebSearches: 1, Fast: true})
		assert.GreaterOrEqual(t, nanos, int64(0))
	})
}
