package meter_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
)

// rig is a session whose transcript a test writes, as the real client does.
type rig struct {
	t    testing.TB
	path string
	id   int // of the last message
}

const session = "b390e335-141d-4188-be22-8f68df859c73"

func newRig(t testing.TB) *rig {
	return &rig{t: t, path: filepath.Join(t.TempDir(), session+".jsonl")}
}

// write appends lines and returns where the first begins.
func (r *rig) write(lines ...string) int64 { return appendTo(r.t, r.path, lines...) }

func appendTo(t testing.TB, path string, lines ...string) int64 {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return info.Size()
}

func prompt(text string) string {
	return fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":%q},"timestamp":"2026-11-22T14:45:39.475Z"}`, text)
}

func feedback(text string) string {
	return fmt.Sprintf(`{"isSidechain":false,"type":"user","isMeta":true,"message":{"role":"user","content":"Stop hook feedback:\n%s"}}`, text)
}

const toolResult = `{"isSidechain":false,"type":"user","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"ok"}]}}`

// answer is a new message of the model.
func (r *rig) answer(in, out int) string {
	r.id++
	return r.part(in, out)
}

// part is another line of the last message.
func (r *rig) part(in, out int) string { return message(fmt.Sprintf("msg_%d", r.id), in, out) }

func message(id string, in, out int) string {
	return fmt.Sprintf(`{"isSidechain":false,"message":{"id":%q,"type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"answer"}],`+
		`"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":%d}},"type":"assistant","uuid":"u","timestamp":"2026-11-22T14:45:39.475Z"}`, id, in, out)
}

// compacted is what the client writes when it has made a summary of so many tokens.
func compacted(tokens int) string {
	return fmt.Sprintf(`{"type":"system","subtype":"compact_boundary","uuid":"c%d","isSidechain":false,"compactMetadata":{"trigger":"auto","preTokens":%d}}`, tokens, tokens) +
		"\n" + `{"type":"user","isCompactSummary":true,"isSidechain":false,"message":{"role":"user","content":"` + strings.Repeat("s", 1206) + `"}}`
}

func stated(usd string) string {
	return `{"type":"cost-state","sessionId":"` + session + `","totalCostUSD":` + usd + `,"hasUnknownModelCost":false}`
}

// counted is a transcript that was counted from its beginning.
type counted struct {
	*meter.Count
	Spent price.Amount
}

func (r *rig) count() counted {
	r.t.Helper()
	c, err := r.countOnly()
	require.NoError(r.t, err)
	return c
}

func (r *rig) countOnly() (counted, error) {
	c, err := meter.Scan(meter.Range{Transcript: r.path})
	return counted{c, before(c, 1<<62)}, err
}

// before is what was spent before the first line of a user at or behind a position.
func before(c *meter.Count, position int64) (sum price.Amount) {
	for _, p := range c.Parts {
		if p.User && p.From >= position {
			break
		}
		sum = sum.Plus(p.Spent)
	}
	return sum
}

func (c counted) Before(position int64) price.Amount { return before(c.Count, position) }

func usd(t testing.TB, s string) int64 {
	n, err := price.DollarsOf(s)
	require.NoError(t, err)
	return n
}

// append appends bytes that are no whole lines.
func (r *rig) append(text string) {
	f, err := os.OpenFile(r.path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(r.t, err)
	_, err = f.WriteString(text)
	require.NoError(r.t, err)
	require.NoError(r.t, f.Close())
}

// agent appends to a subagent's transcript.
func (r *rig) agent(name string, lines ...string) {
	appendTo(r.t, filepath.Join(strings.TrimSuffix(r.path, ".jsonl"), "subagents", name), lines...)
}

func replaceTime(line, clock string) string {
	return strings.ReplaceAll(line, "14:45:39.475Z", clock+".000Z")
}
