package claude

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/tidwall/gjson"
)

// ReplySum tells one reply of the assistant from another.
func ReplySum(reply string) string {
	sum := sha256.Sum256([]byte(reply))
	return hex.EncodeToString(sum[:])
}

// isAnswer leaves out what the client writes in the model's place.
func isAnswer(l gjson.Result) bool {
	return l.Get("type").Str == "assistant" && l.Get("message.model").Str != "<synthetic>" && !l.Get("isApiErrorMessage").Bool()
}

// isTurn recognises what takes a text along to the model: a request, or the
// prompt that one will be made for.
func isTurn(l gjson.Result) bool {
	switch l.Get("type").Str {
	case "api-request", "assistant":
		return true
	case "user":
		return !l.Get("isMeta").Bool()
	}
	return false
}

// isOverride recognises the client's note that it ended a turn although a hook
// blocked, as it does after too many blocks in a row.
func isOverride(l gjson.Result) bool {
	return l.Get("type").Str == "system" && l.Get("subtype").Str == "informational"
}

// isPrompt recognises what a person, or the client in its own name, asks. A
// tool's result and what a hook said are none.
func isPrompt(l gjson.Result) bool {
	return l.Get("type").Str == "user" && !l.Get("isMeta").Bool() && !isToolResult(l)
}

// isToolResult recognises what a tool said, which the client writes as a user's.
func isToolResult(l gjson.Result) bool { return l.Get("message.content.0.type").Str == "tool_result" }

// isSummary recognises what the client writes once all hooks of a Stop have ended.
func isSummary(l gjson.Result) bool {
	return l.Get("type").Str == "system" && l.Get("subtype").Str == "stop_hook_summary"
}

// says reports whether an answer is the reply with that [ReplySum].
func says(answer gjson.Result, sum string) bool {
	text := textOf(answer)
	return text != "" && (ReplySum(text) == sum || ReplySum(strings.TrimSpace(text)) == sum)
}

// handedOver are the places where a line tells of a text that a hook handed over.
var handedOver = []string{
	"message.content", "message.content.#.text", "content",
	"attachment.blockingError.blockingError", "attachment.content",
	"hookErrors", "hookAdditionalContext",
}

// hands reports whether a line tells of the text being handed over: as the
// feedback of a hook, or as its context.
func hands(l gjson.Result, text string) bool {
	if l.Get("type").Str == "assistant" {
		return false
	}
	for _, place := range handedOver {
		v := l.Get(place)
		if v.Type == gjson.String && endsIn(v.Str, text) {
			return true
		}
		for _, item := range v.Array() {
			if item.Type == gjson.String && endsIn(item.Str, text) {
				return true
			}
		}
	}
	return false
}

func endsIn(s, text string) bool {
	before, ok := strings.CutSuffix(s, text)
	return ok && (before == "" || strings.HasSuffix(before, "\n") || strings.HasPrefix(before, "Stop hook") && !strings.Contains(before, "\n"))
}
