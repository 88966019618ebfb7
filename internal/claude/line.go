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

// isAnswer recognises the model's own lines, and not those that the client writes in its name, such as errors.
func isAnswer(l *flat.Members) bool {
	return l.String("type") == "assistant" && l.Value("message").Get("model").Text() != "<synthetic>" && !l.Bool("isApiErrorMessage")
}

// isSilence recognises the client's note that an answer had neither text nor tool. Such an answer has no line of its own.
// The client then asks the model once more. If that answer is silent too, a Stop names an earlier reply.
func isSilence(l *flat.Members) bool {
	return l.String("type") == "user" && l.Bool("isMeta") &&
		strings.HasPrefix(l.Value("message").Get("content").Text(), "[Your previous response had no visible output")
}

// isTurn recognises a line that shows that the text before it reaches the model: a request, or a prompt before one.
func isTurn(l *flat.Members) bool {
	switch l.String("type") {
	case "api-request", "assistant":
		return true
	case "user":
		return !l.Bool("isMeta")
	}
	return false
}

// isOverride recognises the client's note that it ended a turn against a hook's block, as after too many blocks in a row.
func isOverride(l *flat.Members) bool {
	return l.String("type") == "system" && l.String("subtype") == "informational"
}

// isPrompt recognises a prompt by a person or by the client itself, but not a tool's result or a hook's text.
func isPrompt(l *flat.Members) bool {
	return l.String("type") == "user" && !l.Bool("isMeta") && !IsToolResult(l)
}

// AsksModel recognises a prompt of the session's own. It is no summary of the conversation, and nothing that a person ran
// in the client itself: a command of the client's, or a shell's.
func AsksModel(l *flat.Members) bool {
	text := l.Value("message").Get("content").Text()
	local := strings.HasPrefix(text, "<command-name>") || strings.HasPrefix(text, "<local-command-") || strings.HasPrefix(text, "<bash-")
	return isPrompt(l) && !local && !l.Bool("isSidechain") && !l.Bool("isCompactSummary")
}

// IsToolResult recognises a tool's result, which has the type of a user's line.
func IsToolResult(l *flat.Members) bool {
	content := l.Value("message").Get("content")
	// Most are long, and only the first item matters.
	if !strings.HasPrefix(string(content), "[") || !strings.Contains(string(content), "tool_result") {
		return false
	}
	items := content.Items()
	return len(items) > 0 && items[0].Get("type").Text() == "tool_result"
}

// isSummary recognises the note that all hooks of a Stop have ended.
func isSummary(l *flat.Members) bool {
	return l.String("type") == "system" && l.String("subtype") == "stop_hook_summary"
}

// isReply reports whether an answer is the reply with this [ReplySum].
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
