package claude

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"heartbeat/internal/flat"
)

// ReplySum identifies a reply of the assistant by its SHA-256, in hex.
func ReplySum(reply string) string {
	sum := sha256.Sum256([]byte(reply))
	return hex.EncodeToString(sum[:])
}

// isAnswer recognises what the model said. It excludes lines that the client writes in the model's name, such as
// errors.
func isAnswer(l *flat.Members) bool {
	return l.String("type") == "assistant" && l.Value("message").Get("model").Text() != "<synthetic>" && !l.Bool("isApiErrorMessage")
}

// isSilence recognises the client's note that an answer had no text and no tool in it: such an answer has no line of its
// own. The client then asks the model once more, and a Stop names an earlier reply if that was silent, too.
func isSilence(l *flat.Members) bool {
	return l.String("type") == "user" && l.Bool("isMeta") &&
		strings.HasPrefix(l.Value("message").Get("content").Text(), "[Your previous response had no visible output")
}

// isTurn recognises a line which shows that the text before it reaches the model: a request, or a prompt that a request
// will follow.
func isTurn(l *flat.Members) bool {
	switch l.String("type") {
	case "api-request", "assistant":
		return true
	case "user":
		return !l.Bool("isMeta")
	}
	return false
}

// isOverride recognises the client's note that it ended a turn against a hook's block, as it does after too many blocks
// in a row.
func isOverride(l *flat.Members) bool {
	return l.String("type") == "system" && l.String("subtype") == "informational"
}

// isPrompt recognises a prompt by a person or by the client itself, but not a tool's result or what a hook said.
func isPrompt(l *flat.Members) bool {
	return l.String("type") == "user" && !l.Bool("isMeta") && !isToolResult(l)
}

// isToolResult recognises a tool's output, which has the type of a user's line.
func isToolResult(l *flat.Members) bool {
	content := l.Value("message").Get("content")
	return strings.HasPrefix(string(content), "[") && len(content.Items()) > 0 && content.Items()[0].Get("type").Text() == "tool_result"
}

// isSummary recognises the note that all hooks of a Stop have ended.
func isSummary(l *flat.Members) bool {
	return l.String("type") == "system" && l.String("subtype") == "stop_hook_summary"
}

// isReply reports whether an answer is the reply with that [ReplySum].
func isReply(answer *flat.Members, sum string) bool {
	text := textOf(answer)
	return text != "" && (ReplySum(text) == sum || ReplySum(strings.TrimSpace(text)) == sum)
}

// hands reports whether a line shows that a hook handed the text over, as feedback or as context.
func hands(l *flat.Members, text string) bool {
	if l.String("type") == "assistant" {
		return false
	}
	content := l.Value("message").Get("content")
	places := []flat.Value{
		content, l.Value("content"),
		l.Value("attachment").Get("blockingError", "blockingError"), l.Value("attachment").Get("content"),
		l.Value("hookErrors"), l.Value("hookAdditionalContext"),
	}
	for _, block := range content.Items() {
		places = append(places, block.Get("text"))
	}
	for _, place := range places {
		for _, item := range place.Items() {
			if item.IsString() && endsIn(item.Text(), text) {
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
