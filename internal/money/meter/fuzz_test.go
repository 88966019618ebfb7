package meter_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
)

// FuzzFile has anything in the meter's place: it is read or not, and the count goes on.
func FuzzFile(f *testing.F) {
	dir := f.TempDir()
	r := &rig{t: f, dir: dir, path: filepath.Join(dir, "t.jsonl")}
	r.write(prompt("one"), r.answer(10, 1), prompt("two"), compacted(10))
	_, err := meter.Advance(dir, r.silent())
	require.NoError(f, err)
	seed, err := os.ReadFile(filepath.Join(dir, meter.Name))
	require.NoError(f, err)
	f.Add(string(seed), false)
	f.Add(strings.SplitN(strings.TrimSpace(string(seed)), " ", 3)[2], true)
	f.Fuzz(func(t *testing.T, text string, sums bool) {
		dir, file := t.TempDir(), []byte(text)
		if sums {
			file = meter.WithSums(session, text)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, meter.Name), file, 0o600))
		before, err := meter.Load(dir, session)
		require.NoError(t, err)
		s, err := meter.Advance(dir, r.silent())
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
