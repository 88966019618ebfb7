package meter_test

import (
	"os"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
)

// FuzzTranscript counts anything, whole and from each of its lines on: what is before a line and what is behind
// it make up the whole, but for answers that have lines on both sides.
func FuzzTranscript(f *testing.F) {
	f.Add(prompt("one") + "\n" + message("a", 10, 1) + "\n" + message("a", 10, 2) + "\n" + stated("0.5") + "\n")
	f.Add(feedback("x") + "\n" + toolResult + "\n{\"type\":\"assistant\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := newRig(t)
		require.NoError(t, os.WriteFile(r.path, []byte(text), 0o600))
		all := r.count()
		if len(text) > 1000 {
			return
		}
		at := int64(0)
		for line := range strings.Lines(text) {
			at += int64(len(line))
			c, err := meter.Scan(meter.Range{Transcript: r.path, From: at})
			require.NoError(t, err)
			assert.LessOrEqual(t, before(c, 1<<62).Requests, all.Spent.Requests)
			assert.LessOrEqual(t, before(c, 1<<62).Nanos, all.Spent.Nanos)
		}
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
