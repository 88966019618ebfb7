package meter

import (
	"heartbeat/internal/flat"
	"heartbeat/internal/price"
)

// rollout counts a line of a transcript of Codex's, of which each request has one with its
// usage. What a request cost it does not say.
func (s *State) rollout(l *flat.Members, at int64) {
	payload := l.Value("payload")
	switch l.String("type") {
	case "token_usage_record":
		if id := payload.Get("response_id").Text(); id != "" {
			s.asked(hash(id), rolloutTokens(payload.Get("usage")), true, len(s.parts)-1)
		}
	case "event_msg":
		switch item := payload.Get("item").Get("type").Text(); {
		case payload.Get("type").Text() != "item_completed":
		case item == "UserMessage", item == "HookPrompt":
			s.begin(l, at)
		}
	case "turn_context":
		if model := payload.Get("model").Text(); model != "" {
			s.Model = clip(model)
		}
	}
}

// rolloutTokens are those of a usage whose input contains what was cached.
func rolloutTokens(usage flat.Value) price.Tokens {
	of := func(name string) int64 { return number(usage, name) }
	t := price.Tokens{Output: of("output_tokens"), CacheRead: of("cached_input_tokens"), CacheWrite: of("cache_write_input_tokens")}
	t.Input = max(0, of("input_tokens")-t.CacheRead-t.CacheWrite)
	return t
}
