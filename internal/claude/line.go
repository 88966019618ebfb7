package claude

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/tidwall/gjson"
)

// ReplySum identifies a reply of the assistant by its hash.
func ReplySum(reply string) string {
	sum := sha256.Sum256([]byte(reply))
	return hex.EncodeToString(sum[:])
}

// isAnswer recognises what the model said. The client also writes lines in the
// model's name, such as errors; those are no answers.
func isAnswer(l gjson.Result) bool {
	return l.Get("type").Str == "assistant" && l.Get("message.model").Str != "<synthetic>" && !l.Get("isApiErrorMessage").Bool()
}

// isTurn recognises a line that shows that the text before it reaches the model:
// a request, or a prompt that a request will follow.
func isTurn(l gjson.Result) bool {
	switch l.Get("type").Str {
	case "api-request", "assistant":
		return true
	case "user":
		return !l.Get("isMeta").Bool()
	}
	return false
}

// isOverride recognises the client's note that it ended a turn against a hook's
// block, which it does after too many blocks in a row.
func isOverride(l gjson.Result) bool {
	return l.Get("type").Str == "system" && l.Get("subtype").Str == "informational"
}

// isPrompt recognises a prompt by a person or by the client itself. A tool's
// result is no prompt, and neither is what a hook said.
func isPrompt(l gjson.Result) bool {
	return l.Get("type").Str == "user" && !l.Get("isMeta").Bool() && !isToolResult(l)
}

// isToolResult recognises a tool's output, which has the type of a user's line.
func isToolResult(l gjson.Result) bool { return l.Get("message.content.0.type").Str == "tool_result" }

// isSummary recognises the note that all hooks of a Stop have ended.
func isSummary(l gjson.Result) bool {
	return l.Get("type").Str == "system" && l.Get("subtype").Str == "stop_hook_summary"
}

// says reports whether an answer is the reply with that [ReplySum].
func says(answer gjson.Result, sum string) bool {
	text := textOf(answer)
	return text != "" && (ReplySum(text) == sum || ReplySum(strings.TrimSpace(text)) == sum)
}

// handedOver lists the members in which a line quotes a text from a hook.
var handedOver = []string{
	"message.content", "message.content.#.text", "content",
	"attachment.blockingError.blockingError", "attachment.content",
	"hookErrors", "hookAdditionalContext",
}

// hands reports whether a line shows that a hook handed the text over, as feedback
// or as context.
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
