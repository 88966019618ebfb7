package hosting

import (
	"encoding/json"
	"strings"

	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/words"
)

// excerpt is what a message says in one line: the beginning of its text, the tools
// that it calls, or its subtype.
func excerpt(m attach.Message) string {
	var line struct {
		Subtype string
		Result  string
		Error   any
		Message struct{ Content json.RawMessage }
	}
	if json.Unmarshal(m.Raw, &line) != nil {
		return ""
	}
	var parts []string
	if line.Subtype != "" {
		parts = append(parts, line.Subtype)
	}
	if text, is := line.Error.(string); is {
		parts = append(parts, text)
	}
	parts = append(parts, line.Result)
	parts = append(parts, contents(line.Message.Content)...)
	return words.Brief(strings.Join(strings.Fields(strings.Join(parts, " ")), " "))
}

// contents is what a message's content says: one text, or a list of blocks.
func contents(raw json.RawMessage) (parts []string) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []string{text}
	}
	var blocks []struct {
		Type, Text, Thinking, Name string
		Content                    json.RawMessage
		IsError                    bool `json:"is_error"`
	}
	if json.Unmarshal(raw, &blocks) != nil {
		return nil
	}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			parts = append(parts, b.Text)
		case "thinking":
			parts = append(parts, "(thinking)", b.Thinking)
		case "tool_use":
			parts = append(parts, "calls "+b.Name)
		case "tool_result":
			answer := "tool answers:"
			if b.IsError {
				answer = "tool fails:"
			}
			parts = append(append(parts, answer), contents(b.Content)...)
		}
	}
	return parts
}
