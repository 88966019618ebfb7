package meter_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
)

func usageRecord(response string, in, cached, out int) string {
	return fmt.Sprintf(`{"timestamp":"2026-11-23T14:53:06.253Z","ordinal":11,"type":"token_usage_record","payload":{"turn_id":"t1","response_id":%q,`+
		`"usage":{"input_tokens":%d,"cached_input_tokens":%d,"cache_write_input_tokens":0,"output_tokens":%d,"reasoning_output_tokens":1,"total_tokens":%d},`+
		`"thread_token_usage":{"input_tokens":999999,"output_tokens":999999}}}`, response, in, cached, out, in+out)
}

func completed(item string) string {
	return `{"timestamp":"2026-11-23T14:53:06.260Z","type":"event_msg","payload":{"type":"item_completed","turn_id":"t1","item":{"type":"` + item + `","text":"\"assistant\" \"user\""}}}`
}

// A rollout of Codex's has a line for each request, and one for each text that the model was
// given: what an entry took is between two of those.
func TestARollout(t *testing.T) {
	r := newRig(t)
	r.path = filepath.Join(filepath.Dir(r.path), "rollout-2026-11-23T08-00-00-"+session+".jsonl")
	r.write(
		`{"type":"session_meta","payload":{"session_id":"s"}}`,
		`{"type":"turn_context","payload":{"model":"gpt-5"}}`,
		completed("UserMessage"), usageRecord("r1", 1000, 400, 20),
		`{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1000}}}}`,
	)
	first := r.write(completed("HookPrompt"))
	r.write(usageRecord("r2", 500, 0, 10), completed("AgentMessage"), usageRecord("r3", 700, 600, 5), usageRecord("r3", 700, 600, 5))
	second := r.write(completed("HookPrompt"))
	r.write(usageRecord("r4", 100, 200, 1), `{"type":"token_usage_record","payload":{"usage":{"input_tokens":7}}}`)
	s := r.count()
	assert.Equal(t, "gpt-5", s.Model)
	assert.Equal(t, price.Amount{
		Nanos: 1200*1250 + 1200*125 + 36*10_000, Dollars: true,
		Tokens: price.Tokens{Input: 600 + 500 + 100, CacheRead: 400 + 600 + 200, Output: 36}, Requests: 4,
	}, s.Spent)
	before := func(at int64) price.Tokens { return s.Before(at).Tokens }
	assert.Equal(t, price.Tokens{Input: 600, CacheRead: 400, Output: 20}, before(first))
	assert.Equal(t, price.Tokens{Input: 1200, CacheRead: 1000, Output: 35}, before(second))
}

// A chain of entries is one turn, which says its model once, at its beginning: the later entries are priced by it, too.
func TestARolloutLongAfterItsTurnBegan(t *testing.T) {
	r := newRig(t)
	r.path = filepath.Join(filepath.Dir(r.path), "rollout-2026-11-23T08-00-00-"+session+".jsonl")
	r.write(`{"type":"turn_context","payload":{"model":"gpt-5"}}`, usageRecord("r1", 1000, 0, 20))
	r.write(`{"type":"response_item","payload":{"text":"` + strings.Repeat("x", 32<<10) + `"}}`)
	from := r.write(completed("HookPrompt"), usageRecord("r2", 500, 0, 10))
	s, err := meter.Scan(meter.Range{Transcript: r.path, From: from})
	require.NoError(t, err)
	assert.Equal(t, "gpt-5", s.Model)
	assert.Equal(t, price.Amount{Nanos: 500*1250 + 10*10_000, Dollars: true, Tokens: price.Tokens{Input: 500, Output: 10}, Requests: 1}, s.Parts[0].Spent)
}

const (
	sub    = "01a209af-2d60-78a1-a271-1d0b78ccd810"
	subsub = "01a209af-3d60-78a1-a271-1d0b78ccd811"
)

func spawned(id string) string {
	return `{"timestamp":"2026-11-23T14:53:07.000Z","type":"event_msg","payload":{"type":"item_completed","turn_id":"t1","item":{"type":"CollabAgentToolCall","tool":"spawn_agent","receiver_thread_ids":["` + id + `"]}}}`
}

// Subagents of Codex's have rollouts of their own, in the folder of the day on which they
// began. They are told by the calls that are about them; other sessions' rollouts beside them
// are not this one's.
func TestSubagentsOfARollout(t *testing.T) {
	now := time.Now()
	for name, day := range map[string]time.Time{"of the same day": now.AddDate(0, 0, -5), "of today": now, "of yesterday": now.AddDate(0, 0, -1)} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			sessions := filepath.Join(filepath.Dir(r.path), "sessions")
			begun := now.AddDate(0, 0, -5).Format("2006/01/02")
			r.path = filepath.Join(sessions, begun, "rollout-2026-11-23T08-00-00-01a209af-1d60-78a1-a271-1d0b78ccd800.jsonl")
			write := func(id string, lines ...string) {
				path := filepath.Join(sessions, day.Format("2006/01/02"), "rollout-2026-11-23T09-00-00-"+id+".jsonl")
				appendTo(t, path, lines...)
			}
			appendTo(t, r.path, completed("UserMessage"), usageRecord("r1", 1000, 0, 1))
			write(sub, usageRecord("r2", 100, 0, 1))
			write(subsub, usageRecord("r3", 10, 0, 1))
			write("01a209af-4d60-78a1-a271-1d0b78ccd812", usageRecord("r9", 5, 0, 1))
			s := r.count()
			assert.Equal(t, int64(1000), s.Spent.Tokens.Input, "one that nobody has met is not its own")

			appendTo(t, r.path, spawned(sub))
			assert.Equal(t, int64(1100), r.count().Spent.Tokens.Input)
			write(sub, spawned(subsub), usageRecord("r4", 200, 0, 1), usageRecord("r4", 200, 0, 1))
			s = r.count()
			assert.Equal(t, int64(1310), s.Spent.Tokens.Input)
			assert.Equal(t, int64(4), s.Spent.Requests)
			write(subsub, usageRecord("r5", 3, 0, 1))
			assert.Equal(t, int64(1313), r.count().Spent.Tokens.Input)
			assert.Equal(t, int64(1313), r.count().Spent.Tokens.Input, "each is counted once")
		})
	}
}

// A subagent that reviews what the session asks to do (approvals_reviewer) is named nowhere but in its own rollout.
func TestTheReviewerOfARollout(t *testing.T) {
	const own, other = "01a209af-1d60-78a1-a271-1d0b78ccd800", "01a209af-1d60-78a1-a271-1d0b78ccd801"
	r := newRig(t)
	dir := filepath.Dir(r.path)
	r.path = filepath.Join(dir, "rollout-2026-11-23T08-00-00-"+own+".jsonl")
	says := func(reviewer string) string {
		return `{"type":"turn_context","payload":{"approvals_reviewer":"` + reviewer + `","model":"gpt-5"}}`
	}
	meta := func(session string) string {
		return `{"type":"session_meta","payload":{"session_id":"` + session + `","base_instructions":{"text":"` + strings.Repeat("x", 8<<10) + `"}}}`
	}
	appendTo(t, r.path, meta(own), says("user"), completed("UserMessage"), usageRecord("r1", 1000, 0, 1))
	appendTo(t, filepath.Join(dir, "rollout-2026-11-23T08-00-01-"+sub+".jsonl"), meta(own), usageRecord("r2", 100, 0, 1))
	appendTo(t, filepath.Join(dir, "rollout-2026-11-23T08-00-02-"+subsub+".jsonl"), meta(other), usageRecord("r3", 10, 0, 1))
	assert.Equal(t, int64(1000), r.count().Spent.Tokens.Input)
	appendTo(t, r.path, says("auto_review"))
	assert.Equal(t, int64(1100), r.count().Spent.Tokens.Input)
	assert.Equal(t, int64(2), r.count().Spent.Requests)
}

// A subagent may ask another model than its session, and says so in its own rollout.
func TestASubagentOfAnotherModel(t *testing.T) {
	r := newRig(t)
	dir := filepath.Dir(r.path)
	r.path = filepath.Join(dir, "rollout-2026-11-23T08-00-00-01a209af-1d60-78a1-a271-1d0b78ccd800.jsonl")
	appendTo(t, r.path, `{"type":"turn_context","payload":{"model":"gpt-5"}}`, completed("UserMessage"), usageRecord("r1", 1000, 0, 0), spawned(sub))
	path := filepath.Join(dir, "rollout-2026-11-23T09-00-00-"+sub+".jsonl")
	appendTo(t, path, `{"type":"turn_context","payload":{"model":"gpt-5.5"}}`, usageRecord("r2", 1000, 0, 0))
	s := r.count()
	assert.Equal(t, int64(1000*1250+1000*5000), s.Spent.Nanos)
	assert.Equal(t, "gpt-5", s.Model)

	appendTo(t, path, `{"type":"turn_context","payload":{"model":"house"}}`, usageRecord("r3", 1000, 0, 0))
	assert.Equal(t, int64(1), r.count().Spent.Unpriced, "nobody knows what that one costs")
}

// A session in the fast mode says so once, in its settings, and again where it leaves it.
func TestARolloutInTheFastMode(t *testing.T) {
	r := newRig(t)
	r.path = filepath.Join(filepath.Dir(r.path), "rollout-2026-11-23T08-00-00-"+session+".jsonl")
	settings := func(tier string) string {
		return `{"type":"event_msg","payload":{"type":"thread_settings_applied","thread_settings":{"model":"gpt-5.5"` + tier + `}}}`
	}
	r.write(`{"type":"turn_context","payload":{"model":"gpt-5.5"}}`, settings(`,"service_tier":"priority"`), completed("UserMessage"), usageRecord("r1", 1000, 0, 0))
	assert.Equal(t, int64(2*1000*5000), r.count().Spent.Nanos)
	r.write(`{"type":"response_item","payload":{"text":"` + strings.Repeat("x", 32<<10) + `"}}`)
	from := r.write(completed("HookPrompt"), usageRecord("r2", 1000, 0, 0), settings(""), usageRecord("r3", 1000, 0, 0))
	s, err := meter.Scan(meter.Range{Transcript: r.path, From: from})
	require.NoError(t, err)
	assert.Equal(t, int64((2+1)*1000*5000), s.Parts[0].Spent.Nanos)
}
