package meter_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/price"
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
	s := r.advance(r.final())
	assert.Equal(t, "gpt-5", s.Model)
	assert.Equal(t, price.Amount{Tokens: price.Tokens{Input: 600 + 500 + 100, CacheRead: 400 + 600 + 200, Output: 36}, Requests: 4}, s.Spent)
	before := func(at int64) price.Tokens {
		m, known := s.Mark(at)
		assert.True(t, known)
		return m.Before.Tokens
	}
	assert.Equal(t, price.Tokens{Input: 600, CacheRead: 400, Output: 20}, before(first))
	assert.Equal(t, price.Tokens{Input: 1200, CacheRead: 1000, Output: 35}, before(second))
}
